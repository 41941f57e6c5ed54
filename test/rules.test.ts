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
import { mapJson, onStatus, startAlteringGateway } from './altering-gateway.ts';
import { BROKEN_GATEWAYS, brokenRules } from './broken-gateways.ts';
import { listen } from './loopback-server.ts';
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

// Side by side, since each ends with the two seconds that the service reads on behind a 413.
suite('exactly the rules that are broken say so, when a server', { concurrency: true }, () => {
  for (const broken of BROKEN_GATEWAYS) {
    test(broken.what, async () => {
      await using service = await startTestService({ repeatedIdRule: 'reject' });
      await using gateway = await startAlteringGateway(service.url, broken.alterations);
      const found = [...(await findings(gateway.url, service.token)).keys()];
      assert.deepEqual(
        found.sort(),
        brokenRules(broken)
          .map(({ id }) => id)
          .sort(),
      );
    });
  }
});

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
      await using running = await listen(server);
      for (const id of (await findings(running.url, 'any')).keys()) everFound.add(id);
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
