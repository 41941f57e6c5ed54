import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createNetServer } from 'node:net';
import { after, suite, test } from 'node:test';
import { Finding } from '../src/cli/check/finding.ts';
import { drawIds } from '../src/cli/check/ids.ts';
import { INTERFACE_RULES } from '../src/cli/check/interface-rules.ts';
import type { Rule } from '../src/cli/check/rule.ts';
import { OWN_RULES, RULES_FOR_EVERY_STORE } from '../src/cli/check/rules.ts';
import { makeTarget, type Target } from '../src/cli/check/target.ts';
import { type Alterations, mapJson, onStatus, setField, startAlteringGateway } from './altering-gateway.ts';
import { startTestService } from './running-service.ts';
import { enginesUnderTest } from './store-under-test.ts';

const RULES = [...RULES_FOR_EVERY_STORE, ...OWN_RULES];

const ENGINES = await enginesUnderTest();

function newTarget(url: string, token: string): Target {
  return makeTarget(new URL(url), token, drawIds(RULES, undefined), new AbortController().signal);
}

/** Settles with the last turn that was taken. */
let turns: Promise<unknown> = Promise.resolve();

/**
 * Checks one server at a time, though tests run side by side: each exchange has a deadline, and a slow machine would
 * miss it with the exchanges of all tests under way at once.
 *
 * @returns the finding of each rule that does not hold, by the rule's id
 */
function findings(url: string, token: string, rules?: readonly Rule[]): Promise<Map<string, Finding>> {
  const turn = turns.then(() => findingsNow(url, token, rules));
  turns = turn.catch(() => {});
  return turn;
}

async function findingsNow(
  url: string,
  token: string,
  rules: readonly Rule[] = RULES,
): Promise<Map<string, Finding>> {
  const target = newTarget(url, token);
  const found = new Map<string, Finding>();
  await Promise.all(
    rules.map(rule =>
      rule.check(target).catch(error => {
        assert.ok(error instanceof Finding, `${rule.id} failed by itself: ${error.stack}`);
        found.set(rule.id, error);
      }),
    ),
  );
  return found;
}

suite('the list of rules', () => {
  test('gives each rule an id of its own, in one spelling', () => {
    const ids = RULES.map(({ id }) => id);
    assert.deepEqual([...new Set(ids)], ids);
    for (const id of ids) assert.match(id, /^[a-z]+(?:[.-][a-z0-9]+)+$/);
  });

  test('has MUST for the interface, and only for it among the rules for every store', () => {
    const binding = RULES_FOR_EVERY_STORE.filter(({ level }) => level === 'MUST');
    assert.deepEqual(binding, INTERFACE_RULES);
    for (const { id, source } of binding) assert.match(source, /^interface, /, id);
  });

  test('marks its own rules, so that nobody takes them for the interface', () => {
    const marked = RULES.filter(({ id }) => id.startsWith('ours.'));
    assert.deepEqual(marked, OWN_RULES);
  });
});

for (const under of ENGINES) {
  suite(`the service on ${under.name} keeps the rule`, async () => {
    const service = await startTestService({ database: await under.newDatabase() });
    after(() => service[Symbol.asyncDispose]());
    const target = newTarget(service.url, service.token);
    for (const rule of RULES) {
      test(`${rule.level} ${rule.id}: ${rule.title}`, () => rule.check(target));
    }
  });
}

/** What is broken, and exactly the rules that must say so; a star at the end stands for the rest of an id. */
const BROKEN: { what: string; alterations: Alterations; rules: string[] }[] = [
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

function firstOfEach(rawHeaders: string[]): string[] {
  const first = new Map<string, string[]>();
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const field = rawHeaders.slice(index, index + 2);
    const name = field[0]!.toLowerCase();
    if (!first.has(name)) first.set(name, field);
  }
  return [...first.values()].flat();
}

// Side by side, since each ends with the two seconds that the service reads on behind a 413.
suite('exactly the rules that are broken say so, when a server', { concurrency: true }, () => {
  for (const { what, alterations, rules } of BROKEN) {
    test(what, async () => {
      // Where ids are write-once, two ids taken for one show in the status alone.
      await using service = await startTestService({ repeatedIdRule: 'reject' });
      await using gateway = await startAlteringGateway(service.url, alterations);
      const found = [...(await findings(gateway.url, service.token)).keys()];
      assert.deepEqual(found.sort(), [...rules.flatMap(idsLike), 'repeat.other'].sort());
    });
  }
});

/** The ids of rules that a text means, which may have a star for any part of an id. */
function idsLike(text: string): string[] {
  const pattern = new RegExp(`^${text.replaceAll('.', String.raw`\.`).replaceAll('*', '.*')}$`);
  return RULES.map(({ id }) => id).filter(id => pattern.test(id));
}

suite('the list as a whole', { concurrency: true }, () => {
  test('holds where ids are write-once, but for the one that is a free choice', async () => {
    await using service = await startTestService({ repeatedIdRule: 'reject' });
    assert.deepEqual([...(await findings(service.url, service.token)).keys()], ['repeat.other']);
  });

  test('holds at a base address with a path', async () => {
    await using service = await startTestService();
    const prefix = '/garden/v1';
    await using gateway = await startAlteringGateway(service.url, {
      target: path => (path.startsWith(prefix) ? path.slice(prefix.length) : '/elsewhere'),
    });
    const found = await findings(`${gateway.url}${prefix}/`, service.token, INTERFACE_RULES);
    assert.deepEqual([...found.keys()], []);
  });

  test('has no rule that holds on each of three servers that do not look at the request', async () => {
    const everFound = new Set<string>();
    for (const status of [200, 400, 401]) {
      const server = createServer({ requireHostHeader: false }, (_request, response) => {
        response.writeHead(status, { 'Content-Type': 'text/html' }).end('{}');
      });
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      for (const id of (await findings(url, 'any')).keys()) everFound.add(id);
      server.close();
    }
    const ids = RULES.map(({ id }) => id);
    assert.deepEqual(
      ids.filter(id => !everFound.has(id)),
      [],
    );
  });
});

suite('a finding', { concurrency: true }, () => {
  test('shows what was sent, without the token, and what came back', async () => {
    await using service = await startTestService();
    await using gateway = await startAlteringGateway(service.url, {
      answer: onStatus(200, message => mapJson(message, plant => ({ id: 1, ...plant }))),
    });
    const finding = (await findings(gateway.url, service.token, INTERFACE_RULES)).get('create.no-id')!;
    assert.equal(finding.message, 'expected id absent; found id 1');
    assert.match(finding.sent, /^POST \/plants\nHost: .*\nAuthorization: Bearer <ACCESS_TOKEN>\n/);
    assert.match(finding.sent, /\n\n\{"id":[0-9]+,"name":"A"\}$/);
    assert.ok(!finding.sent.includes(service.token));
    assert.match(
      finding.received!,
      /^200 OK\nContent-Type: application\/json\n(?:.*\n)+\n\{"id":1,"name":"A"\}$/,
    );
  });

  test('says so when no answer comes', async () => {
    const server = createNetServer(socket => socket.destroy());
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const found = await findings(url, 'any');
    server.close();
    assert.equal(found.size, RULES.length);
    for (const { message, received } of found.values()) {
      assert.match(message, /^no whole answer came \((?:ECONNRESET|EPIPE)\)$/);
      assert.equal(received, undefined);
    }
  });
});
