import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, suite, test } from 'node:test';
import { RULES_FOR_EVERY_STORE } from '../../../src/cli/check/http-rules.ts';
import { drawIds } from '../../../src/cli/check/ids.ts';
import { INTERFACE_RULES } from '../../../src/cli/check/interface-rules.ts';
import { OWN_RULES } from '../../../src/cli/check/own-rules.ts';
import { Finding, NotChecked, type Rule } from '../../../src/cli/check/rule.ts';
import { plantsUrl } from '../../../src/client/transport.ts';
import { listen } from '../../harness/loopback-server.ts';
import { type RunningService, startTestService } from '../../harness/running-service.ts';
import {
  type Alteration,
  type Alterations,
  mapJson,
  onStatus,
  setField,
  startTamperingProxy,
} from './tampering-proxy.ts';

const RULES = [...RULES_FOR_EVERY_STORE, ...OWN_RULES];
const IDS = RULES.map(({ id }) => id);

/** @returns the finding of each rule that does not hold, by the rule's id */
async function findings(
  url: string,
  token: string,
  rules: readonly Rule[] = RULES,
): Promise<Map<string, Finding>> {
  const server = { plantsUrl: plantsUrl(new URL(url)), token, stop: new AbortController().signal };
  const { fresh, neighbours } = drawIds(rules);
  const found = new Map<string, Finding>();
  await Promise.all(
    rules.map((rule, index) =>
      rule.check({ ...server, neighbours, id: fresh[index]! }).catch(error => {
        if (error instanceof NotChecked) return;
        assert.ok(error instanceof Finding, `${rule.id} failed by itself: ${error.stack}`);
        found.set(rule.id, error);
      }),
    ),
  );
  return found;
}

suite('the list of rules', () => {
  test('gives each rule a unique id in one spelling', () => {
    assert.deepEqual([...new Set(IDS)], IDS);
    for (const id of IDS) assert.match(id, /^[a-z]+(?:[.-][a-z0-9]+)+$/);
  });

  test('has MUST only for rules of the interface, and marks the rules of this plant store', () => {
    const binding = RULES_FOR_EVERY_STORE.filter(({ level }) => level === 'MUST');
    assert.deepEqual(binding, INTERFACE_RULES);
    for (const { id, source } of binding) assert.match(source, /^interface, /, id);
    assert.deepEqual(
      RULES.filter(({ id }) => id.startsWith('ours.')),
      OWN_RULES,
    );
  });

  test('gives each rule for every server its source', () => {
    const sources = Map.groupBy(RULES_FOR_EVERY_STORE, ({ source }) => source);
    assert.deepEqual([...sources.keys()].sort(), Object.keys(SOURCES).sort());
    for (const [source, rules] of sources)
      assert.deepEqual(rules.map(({ id }) => id).sort(), idsLike(SOURCES[source]!), source);
  });
});

/** Where each rule for every server comes from. */
const SOURCES: Record<string, string> = {
  'interface, POST /plants, rule 1': 'create.status create.stored-id repeat.same repeat.other',
  'interface, POST /plants, rule 1; RFC 8259 section 4': 'create.json.member-order',
  'interface, POST /plants, rule 1; RFC 8259 section 2': 'create.json.white-space',
  'interface, POST /plants, responses': 'create.media-type error.media-type',
  'interface, Plant': 'create.no-id create.name.* create.tag.* create.text.*',
  'interface, NewPlant': 'create.id.*',
  'interface, POST /plants, rule 2': 'error.shape.*',
  'RFC 9110 section 11.1': 'credential.scheme-case',
  'RFC 9110 section 8.3.1': 'media-type.case',
  'RFC 8259 section 11': 'media-type.charset',
  'RFC 9112 section 3.2.2': 'http.absolute-form',
  'RFC 9110 section 5.1': 'http.field-name-case',
  'RFC 9112 section 7.1': 'http.chunked',
  'RFC 6750 section 3': 'credential.missing credential.empty',
  'RFC 6750 section 3.1': 'credential.unknown',
  'RFC 9110 section 15.5.2': 'credential.other-scheme',
  'RFC 9110 section 15.5.16': 'media-type.other',
  'RFC 9110 section 8.4': 'content-coding.unknown',
  'RFC 9110 section 15.5.5': 'path.unknown',
  'RFC 9112 section 3.2': 'http.host-missing http.host-repeated',
  'RFC 9110 section 15.5.2; RFC 6750 section 3': 'credential.challenge',
  'RFC 9110 section 15.5.6': 'method.other',
  'interface, POST /plants, request; RFC 9110 section 15.5': 'reject.*',
};

/** @param patterns ids, with white space between them; a star matches any text */
function idsLike(patterns: string): string[] {
  const expressions = patterns
    .split(/\s+/)
    .map(text => new RegExp(`^${text.replaceAll('.', String.raw`\.`).replaceAll('*', '.*')}$`));
  return IDS.filter(id => expressions.some(expression => expression.test(id))).sort();
}

const AS_TEXT = setField('content-type', 'text/plain');

/** Tampering proxies and the ids of the rules that each breaks. A star matches any text. */
const BROKEN_PROXIES: [what: string, alterations: Alterations, rules: string][] = [
  [
    'rounds ids to doubles, as JSON.parse does',
    { request: mapJson(value => value) },
    `create.id.int64-* create.id.neighbours-above-double
     ours.id.above-double ours.id.below-double ours.id.int64-*
     ours.reject.further-member-repeated ours.reject.id-fraction-above-double ours.reject.id-repeated
     ours.reject.id-tiny-fraction ours.reject.id-underflow`,
  ],
  [
    'rejects ids beyond 32 bits',
    { request: mapJson(plant => (isBeyondInt32(plant.id) ? { ...plant, id: 'large' } : plant)) },
    // JSON.parse and JSON.stringify give the last four bodies small ids and no repetition.
    `create.id.above-* create.id.below-int32 create.id.int64-* create.id.neighbours-above-double
     ours.id.above-double ours.id.below-double ours.id.int64-*
     ours.reject.further-member-repeated ours.reject.id-repeated
     ours.reject.id-tiny-fraction ours.reject.id-underflow`,
  ],
  ['drops an empty tag', mapPlant(({ tag, ...rest }) => (tag ? { ...rest, tag } : rest)), 'create.tag.empty'],
  [
    'adds a null tag to plants without a tag',
    mapPlant(plant => ({ tag: null, ...plant })),
    'create.tag.absent',
  ],
  [
    'reads UTF-8 as ISO 8859-1',
    { request: message => ({ ...message, body: Buffer.from(message.body.toString('latin1')) }) },
    `create.name.non-ascii create.text.emoji create.text.invisible create.text.n*
     ours.reject.not-utf8 reject.not-utf8`,
  ],
  [
    'trims names',
    mapPlant(plant => ({ ...plant, name: String(plant.name).trim() })),
    'create.name.escaped create.name.space create.text.space',
  ],
  [
    'responds with error numbers beyond int32',
    {
      response: onStatus(
        400,
        mapJson(body => ({ ...body, error: 2 ** 31 })),
      ),
    },
    `create.stored-id error.shape.* ours.reject.* ours.every-fault-named ours.repeat.other-name ours.repeat.tag-removed`,
  ],
  ['sends 400 as text', { response: onStatus(400, AS_TEXT) }, 'error.media-type ours.fields.rejected'],
  ['sends 200 as text', { response: onStatus(200, AS_TEXT) }, 'create.media-type ours.fields.stored'],
  [
    'removes the challenge from 401',
    { response: setField('www-authenticate', undefined) },
    'credential.challenge ours.credential.*.challenge',
  ],
  [
    'forwards only the first of several fields with one name',
    { request: message => ({ ...message, rawHeaders: firstOfEach(message.rawHeaders) }) },
    'http.host-repeated ours.credential.repeated ours.media-type.repeated',
  ],
  [
    'accepts any media type',
    { request: setField('content-type', 'application/json') },
    'media-type.other ours.media-type.charset ours.media-type.other',
  ],
  [
    'accepts any content coding',
    { request: setField('content-encoding', undefined) },
    'content-coding.unknown ours.content-encoding',
  ],
  ['names its software', { response: addField('Server', 'garden/1.0') }, 'ours.fields.*'],
];

function isBeyondInt32(id: unknown): boolean {
  return Number.isInteger(id) && id !== (Number(id) | 0);
}

function mapPlant(change: (plant: Record<string, unknown>) => object): Alterations {
  return { response: onStatus(200, mapJson(change)) };
}

function addField(name: string, value: string): Alteration {
  return message => ({ ...message, rawHeaders: [...message.rawHeaders, name, value] });
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

// With write-once ids, the status shows if two ids become one. The MAY rule `repeat.other` then
// fails.
suite('before a service with write-once ids, exactly the broken rules do not hold', () => {
  let service: RunningService;
  before(async () => {
    service = await startTestService({ repeatedIdRule: 'reject' });
  });
  after(() => service[Symbol.asyncDispose]());

  test('without a proxy', async () => {
    assert.deepEqual([...(await findings(service.url, service.token)).keys()], ['repeat.other']);
  });

  for (const [what, alterations, rules] of BROKEN_PROXIES) {
    test(`a proxy that ${what}`, async () => {
      await using gateway = await startTamperingProxy(service.url, alterations);
      const found = await findings(gateway.url, service.token);
      assert.deepEqual([...found.keys()].sort(), idsLike(`${rules} repeat.other`));
    });
  }

  test('a proxy that replaces every credential by its own', async () => {
    await using gateway = await startTamperingProxy(service.url, {
      request: (message, status) => {
        const bare = setField('authorization', undefined)(message, status);
        return addField('Authorization', `Bearer ${service.token}`)(bare, status);
      },
    });
    const found = await findings(gateway.url, 'any', RULES_FOR_EVERY_STORE);
    const credential = ['missing', 'unknown', 'empty', 'other-scheme'].map(each => `credential.${each}`);
    assert.deepEqual([...found.keys()].sort(), [...credential, 'repeat.other'].sort());
  });

  test('a proxy with a path prefix', async () => {
    const prefix = '/garden/v1';
    await using gateway = await startTamperingProxy(service.url, {
      target: path => (path.startsWith(prefix) ? path.slice(prefix.length) : '/elsewhere'),
    });
    const found = await findings(`${gateway.url}${prefix}/`, service.token, INTERFACE_RULES);
    assert.deepEqual([...found.keys()], []);
  });
});

test('each rule fails on at least one of three servers that ignore the request', async () => {
  const everFound = new Set<string>();
  for (const status of [200, 400, 401]) {
    const server = createServer({ requireHostHeader: false }, (_request, response) => {
      response.writeHead(status, { 'Content-Type': 'text/html' }).end('{}');
    });
    await using running = await listen(server);
    for (const id of (await findings(running.url, 'any')).keys()) everFound.add(id);
  }
  assert.deepEqual(
    IDS.filter(id => !everFound.has(id)),
    [],
  );
});
