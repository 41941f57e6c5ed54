import type { Rule } from '../src/cli/check/rule.ts';
import { OWN_RULES, RULES_FOR_EVERY_STORE } from '../src/cli/check/rules.ts';
import { type Alterations, mapJson, onStatus, setField } from './altering-gateway.ts';

/** A gateway that breaks rules which the service behind it keeps. */
export interface BrokenGateway {
  what: string;
  alterations: Alterations;
  /** The ids of exactly the rules that must say so; a star stands for any part of an id. */
  rules: string[];
}

export const BROKEN_GATEWAYS: BrokenGateway[] = [
  {
    what: 'rounds ids to doubles, as JSON.parse does',
    alterations: { request: message => mapJson(message, value => value) },
    rules: [
      'create.id.int64-*',
      'create.id.neighbours-above-double',
      'ours.id.above-double',
      'ours.id.below-double',
      'ours.id.int64-*',
      'ours.refuse.further-member-repeated',
      'ours.refuse.id-fraction-above-double',
      'ours.refuse.id-repeated',
      'ours.refuse.id-tiny-fraction',
      'ours.refuse.id-underflow',
    ],
  },
  {
    what: 'refuses ids beyond 32 bits',
    alterations: {
      request: message =>
        mapJson(message, plant =>
          Number.isInteger(plant.id) && plant.id !== (Number(plant.id) | 0)
            ? { ...plant, id: 'large' }
            : plant,
        ),
    },
    rules: [
      'create.id.above-*',
      'create.id.below-int32',
      'create.id.int64-*',
      'create.id.neighbours-above-double',
      'ours.id.above-double',
      'ours.id.below-double',
      'ours.id.int64-*',
      // Written anew by JSON.parse and JSON.stringify, these are small integers, and no member repeats.
      'ours.refuse.further-member-repeated',
      'ours.refuse.id-repeated',
      'ours.refuse.id-tiny-fraction',
      'ours.refuse.id-underflow',
    ],
  },
  {
    what: 'drops an empty tag',
    alterations: {
      answer: onStatus(200, message =>
        mapJson(message, ({ tag, ...rest }) => (tag ? { ...rest, tag } : rest)),
      ),
    },
    rules: ['create.tag.empty'],
  },
  {
    what: 'answers a tag of null where there was none',
    alterations: { answer: onStatus(200, message => mapJson(message, plant => ({ tag: null, ...plant }))) },
    rules: ['create.tag.absent'],
  },
  {
    what: 'answers the id in the Plant',
    alterations: { answer: onStatus(200, message => mapJson(message, plant => ({ id: 1, ...plant }))) },
    rules: ['create.no-id'],
  },
  {
    what: 'reads UTF-8 as ISO 8859-1',
    alterations: {
      request: message => ({ ...message, body: Buffer.from(message.body.toString('latin1')) }),
    },
    rules: ['create.name.non-ascii', 'ours.refuse.not-utf8', 'refuse.not-utf8'],
  },
  {
    what: 'trims names',
    alterations: {
      answer: onStatus(200, message =>
        mapJson(message, plant => ({ ...plant, name: String(plant.name).trim() })),
      ),
    },
    rules: ['create.name.escaped', 'create.name.space'],
  },
  {
    what: 'answers 400 in another shape',
    alterations: {
      answer: onStatus(400, message => ({
        ...message,
        body: Buffer.from('{"code":"invalid","message":"no"}'),
      })),
    },
    rules: [
      'error.shape.*',
      'ours.refuse.*',
      'ours.every-fault-named',
      'ours.repeat.other-name',
      'ours.repeat.tag-removed',
    ],
  },
  {
    what: 'puts a page of its own in place of errors',
    alterations: {
      answer: onStatus(400, message => ({
        ...setField(message, 'content-type', () => 'text/html'),
        body: Buffer.from('<h1>400 Bad Request</h1>'),
      })),
    },
    rules: [
      'error.media-type',
      'error.shape.*',
      'ours.every-fault-named',
      'ours.fields.refused',
      'ours.refuse.*',
      'ours.repeat.other-name',
      'ours.repeat.tag-removed',
    ],
  },
  {
    what: 'answers error numbers as strings',
    alterations: {
      answer: onStatus(400, message => mapJson(message, body => ({ ...body, error: '40001' }))),
    },
    rules: [
      'error.shape.*',
      'ours.refuse.*',
      'ours.every-fault-named',
      'ours.repeat.other-name',
      'ours.repeat.tag-removed',
    ],
  },
  {
    what: 'answers error numbers beyond int32',
    alterations: {
      answer: onStatus(400, message => mapJson(message, body => ({ ...body, error: 2 ** 31 }))),
    },
    rules: [
      'error.shape.*',
      'ours.refuse.*',
      'ours.every-fault-named',
      'ours.repeat.other-name',
      'ours.repeat.tag-removed',
    ],
  },
  {
    what: 'answers 400 as text',
    alterations: { answer: onStatus(400, message => setField(message, 'content-type', () => 'text/plain')) },
    rules: ['error.media-type', 'ours.fields.refused'],
  },
  {
    what: 'answers 200 as text',
    alterations: { answer: onStatus(200, message => setField(message, 'content-type', () => 'text/plain')) },
    rules: ['create.media-type', 'ours.fields.kept'],
  },
  {
    what: 'answers 401 without a challenge',
    alterations: { answer: message => setField(message, 'www-authenticate', () => undefined) },
    rules: ['credential.challenge', 'ours.credential.*.challenge'],
  },
  {
    what: 'answers 405 without Allow',
    alterations: { answer: message => setField(message, 'allow', () => undefined) },
    rules: ['method.other', 'ours.method.allow'],
  },
  {
    what: 'keeps the first of several fields of a name',
    alterations: { request: message => ({ ...message, rawHeaders: firstOfEach(message.rawHeaders) }) },
    rules: ['http.host-repeated', 'ours.credential.repeated', 'ours.media-type.repeated'],
  },
  {
    what: 'takes any media type and content coding',
    alterations: {
      request: message =>
        setField(
          setField(message, 'content-type', () => 'application/json'),
          'content-encoding',
          () => undefined,
        ),
    },
    rules: [
      'content-coding.unknown',
      'media-type.other',
      'ours.content-encoding',
      'ours.media-type.charset',
      'ours.media-type.other',
    ],
  },
  {
    what: 'names the software it is',
    alterations: {
      answer: message => ({ ...message, rawHeaders: [...message.rawHeaders, 'Server', 'garden/1.0'] }),
    },
    rules: ['ours.fields.*'],
  },
];

/**
 * The rules that do not hold behind a gateway, before a service whose ids are write-once: there two ids that are taken for
 * one show in the status, and `repeat.other` does not hold by choice.
 */
export function brokenRules({ rules }: BrokenGateway): Rule[] {
  const patterns = [...rules, 'repeat.other'].map(
    text => new RegExp(`^${text.replaceAll('.', String.raw`\.`).replaceAll('*', '.*')}$`),
  );
  return [...RULES_FOR_EVERY_STORE, ...OWN_RULES].filter(({ id }) =>
    patterns.some(pattern => pattern.test(id)),
  );
}

function firstOfEach(rawHeaders: string[]): string[] {
  const first = new Map<string, string[]>();
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const field = rawHeaders.slice(index, index + 2);
    const name = field[0]!.toLowerCase();
    if (!first.has(name)) first.set(name, field);
  }
  return [...first.values()].flat();
}
