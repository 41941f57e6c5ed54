import assert from 'node:assert/strict';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import createFetchClient from 'openapi-fetch';
import { PlantStore } from '../../../src/client/plant-store.ts';
import { ERRORS } from '../../../src/core/contract/errors.ts';
import { hashToken, makeToken } from '../../../src/core/tokens/token.ts';
import { sandboxExtra } from '../../../src/extras/sandbox/failing-operation.ts';
import { sandboxFilesOf } from '../../../src/extras/sandbox/sandbox-files.ts';
import { commandProcess } from '../../harness/command-lines.ts';
import { generatedClient } from '../../harness/generated-client.ts';
import { assertFailed, sendPlant, startServe } from '../../harness/program.ts';
import {
  ask,
  chunked,
  RawConnection,
  type RequestParts,
  requestBytes,
} from '../../harness/raw-connection.ts';
import { startTestService, type TestSettings } from '../../harness/running-service.ts';
import { openTokens } from '../../harness/store-under-test.ts';
import { storedRevisions } from '../../harness/stored-revisions.ts';
import { testFolder } from '../../harness/test-folder.ts';
import { until } from '../../harness/until.ts';

/** What fails for two requests with the same id, and works then. */
const TRANSIENT = [408, 429, 500, 50301, 50302, 50303].map(code => `code=${code}`);
const LOST = ['lose=request', 'lose=response', 'lose=half'];
const SURVIVED = [...TRANSIENT, ...LOST, 'delay=0.1', 'code=503, lose=half', 'delay=0.1, lose=response'];

/** A sandbox in this process, with functions for its tests. */
async function startSandbox(settings: TestSettings = {}) {
  const path = join(testFolder(), 'plants.db');
  const files = sandboxFilesOf(path);
  const extras = [sandboxExtra(files, '')];
  const service = await startTestService({ ...settings, database: `sqlite:${path}`, extras });
  const { port } = service.address;
  const send = (id: number, Prefer: string | string[]) =>
    ask(port, service.token, { body: `{"id":${id},"name":"A"}`, headers: { Prefer } });
  /** For each preference a token whose requests all prefer it. */
  const tokensFor = async (preferences: readonly string[]) => {
    await using store = await openTokens(service.database);
    const tokens = preferences.map(makeToken);
    for (const [index, prefer] of preferences.entries()) {
      const hash = hashToken(tokens[index]!);
      await store.tokenTable.createToken({ hash, label: prefer, createdAt: 1, expiresAt: null });
      files.tokens.append({ hash, prefer });
    }
    // On a busy machine the lookup of a new token can time out. That 503 would not use up its fault.
    for (const token of tokens) {
      const isKnown = async () => (await ask(port, token, { body: '{' })).status === 400;
      await until('the service knows the token', isKnown);
    }
    return tokens;
  };
  const revisions = async () =>
    (await storedRevisions(service.database)).map(each => `${each.plant.id}:${each.revision}`);
  return { ...service, port, send, tokensFor, revisions };
}

/** Without what differs between two responses for other reasons. */
function comparable({ status, headers, body }: Awaited<ReturnType<typeof ask>>) {
  const others = [...headers].filter(([name]) => !['date', 'preference-applied'].includes(name));
  return { status, headers: Object.fromEntries(others.sort()), body };
}

const PREFERENCES: [prefer: string | string[], status: number, applied: string][] = [
  ['', 200, 'sandbox'],
  ['code=503;', 503, 'sandbox, code=503'],
  ['CODE = "40003"', 400, 'sandbox, code=40003'],
  ['code=idTaken; why="a, b", times=7', 400, 'sandbox, code=idTaken, times=7'],
  [['respond-async, wait=10', 'code=429, code=503'], 429, 'sandbox, code=429'],
  ['a="b, code=500", code=4\\05', 200, 'sandbox'],
  ['a="\\", code=500", code="4\\05"', 405, 'sandbox, code=405'],
  ['code, code=, code=200, code=999, code=toString', 200, 'sandbox'],
  ['delay=61, delay=-1, delay=1e1, delay=, lose=all, times=0, times=2', 200, 'sandbox'],
  ['"code=503', 200, 'sandbox'],
];

test('a request asks for faults as RFC 7240 says, and anything else is ignored', async () => {
  await using sandbox = await startSandbox();
  for (const [index, [prefer, status, applied]] of PREFERENCES.entries()) {
    const { headers, ...response } = await sandbox.send(index, prefer);
    assert.deepEqual([response.status, headers.get('preference-applied')], [status, applied], String(prefer));
  }
  assert.match(await (await fetch(`${sandbox.opsUrl}/readyz`)).text(), /"warnings":\["this is a sandbox/);
});

/** Requests that a service rejects with these errors. */
const REJECTED: [number, RequestParts][] = [
  [40000, { headers: { Host: null } }],
  [40001, { body: '{' }],
  [40003, { body: '{"id":1,"name":"B"}' }],
  [40101, { headers: { Authorization: null } }],
  [40102, { headers: { Authorization: 'Bearer plant_unknown' } }],
  [40401, { target: '/plant' }],
  [40501, { method: 'GET' }],
  [41301, { body: 'x'.repeat(1000) }],
  [41501, { headers: { 'Content-Type': 'text/plain' } }],
  [41502, { headers: { 'Content-Encoding': 'gzip' } }],
  [43101, { headers: { Long: 'x'.repeat(17_000) } }],
];

test('code= gives the response of a service, on any connection, and stores nothing', async () => {
  const settings = { bodyBytesMax: 500, repeatedIdRule: 'reject' } as const;
  await using sandbox = await startSandbox(settings);
  await using service = await startTestService(settings);
  assert.equal((await ask(service.address.port, service.token)).status, 200);
  for (const [code, parts] of REJECTED) {
    const real = await ask(service.address.port, service.token, parts);
    assert.deepEqual(comparable(await sandbox.send(1, `code=${code}`)), comparable(real));
    // The sandbox itself gives this error, too, whatever the request prefers.
    if (code === 40003) continue;
    const headers = { Prefer: 'code=500', ...parts.headers };
    const own = await ask(sandbox.port, sandbox.token, { ...parts, headers });
    assert.deepEqual(comparable(own), comparable(real));
    // Other requests are rejected before the operation that the sandbox changes.
    assert.equal(own.headers.get('preference-applied'), code === 40001 ? 'sandbox' : undefined);
  }
  for (const { number, status, retry } of Object.values(ERRORS)) {
    using connection = await RawConnection.open(sandbox.port);
    connection.write(requestBytes(sandbox.token, { headers: { Prefer: `code=${number}` } }));
    const { headers, body } = await connection.response();
    assert.equal(JSON.parse(body).error, number);
    assert.equal(headers.get('retry-after'), [429, 503].includes(status) && retry ? '1' : undefined);
    if (headers.get('connection') === 'close') assert.equal(await connection.ended, 'closed');
  }
  assert.deepEqual(await sandbox.revisions(), []);
});

test('delay= and lose= act where they say, and times= ends them for each id', async () => {
  await using sandbox = await startSandbox();
  const beganAt = performance.now();
  assert.equal((await sandbox.send(1, 'delay=0.5')).status, 200);
  assert.ok(performance.now() - beganAt >= 499);
  for (const [index, lose] of LOST.entries()) {
    const id = 2 + index;
    const parts = { body: `{"id":${id},"name":"Ficus"}`, headers: { Prefer: `${lose}, times=2` } };
    for (let time = 0; time < 2; time++) {
      using connection = await RawConnection.open(sandbox.port);
      connection.write(requestBytes(sandbox.token, parts));
      await connection.ended;
      assert.match(connection.unread, lose === 'lose=half' ? /^HTTP\/1\.1 200 .*\r\n\r\n\{"name":$/s : /^$/);
    }
    assert.equal((await sandbox.revisions()).includes(`${id}:1`), lose !== 'lose=request');
    const { status, headers: applied } = await ask(sandbox.port, sandbox.token, parts);
    assert.deepEqual([status, applied.get('preference-applied')], [200, 'sandbox']);
  }
  assert.deepEqual(await sandbox.revisions(), ['1:1', '2:1', '3:1', '4:1']);
});

const commands = commandProcess();
const { createPlant } = await generatedClient();

type Send = (url: string, token: string, plants: { id: number; name: string }[]) => Promise<boolean>;

/** Programs that send plants. They resolve with whether all are stored. */
const SENDERS: Record<string, Send> = {
  'the client': async (url, token, plants) => {
    const store = new PlantStore({ url, token });
    return allTrue(plants.map(async plant => (await store.createPlant(plant)).revision === 1));
  },
  import: async (url, token, plants) => {
    const stdin = ['id,name', ...plants.map(({ id, name }) => `${id},${name}`), ''].join('\n');
    const args = ['import', '-', '--url', url, '--token', token];
    const { stdout } = await commands.run({ args, stdin });
    return stdout.includes(' 0 replaced, 0 rejected');
  },
  'openapi-fetch, called again,': (baseUrl, token, plants) => {
    const client = createFetchClient({ baseUrl, headers: { Authorization: `Bearer ${token}` } });
    const send = (body: object) => client.POST('/plants' as never, { body } as never);
    return allTrue(plants.map(async plant => (await send(plant)).response.ok));
  },
  'hey-api, called again,': (baseUrl, auth, plants) => {
    const send = (body: object) => createPlant({ baseUrl, auth, body });
    return allTrue(plants.map(async plant => (await send(plant)).error === undefined));
  },
};

async function verdictsIn({ database }: { database: string }): Promise<Set<string>> {
  const { stdout } = await commands.run({ args: ['sandbox', 'report', '--json', '--database', database] });
  return new Set(
    stdout
      .trim()
      .split('\n')
      .map(line => JSON.parse(line).verdict),
  );
}

async function allTrue(sent: Promise<boolean>[]): Promise<boolean> {
  return (await Promise.all(sent.map(each => each.catch(() => false)))).every(Boolean);
}

for (const [name, send] of Object.entries(SENDERS))
  test(`${name} survives each transient case, without a second revision`, async () => {
    await using sandbox = await startSandbox();
    const tokens = await sandbox.tokensFor(SURVIVED.map(prefer => `${prefer}, times=1`));
    const runs = SURVIVED.map(async (prefer, index) => {
      const token = tokens[index]!;
      const plants = Array.from({ length: 4 }, (_, row) => ({ id: index * 10 + row, name: 'A' }));
      const isStored = await send(sandbox.url, token, plants);
      const isRepeated = name.includes('again') && prefer !== 'delay=0.1';
      assert.equal(isStored, !isRepeated, prefer);
      if (isRepeated) assert.ok(await send(sandbox.url, token, plants), prefer);
      return plants.map(({ id }) => `${id}:1`);
    });
    const stored = (await Promise.all(runs)).flat();
    assert.deepEqual(await sandbox.revisions(), stored);
    // Calling again at once waits for no Retry-After.
    const verdicts = name.includes('again') ? ['ok', 'ignored Retry-After'] : ['ok'];
    assert.deepEqual(await verdictsIn(sandbox), new Set(verdicts));
  });

test('the client reports every error that is not transient, and nothing is stored', async () => {
  await using sandbox = await startSandbox();
  const errors = Object.values(ERRORS).filter(({ number, retry }) => !retry && number !== 40000);
  const tokens = await sandbox.tokensFor(errors.map(({ number }) => `code=${number}`));
  for (const [index, { number }] of errors.entries()) {
    const client = new PlantStore({ url: sandbox.url, token: tokens[index]! });
    await assert.rejects(client.createPlant({ id: 1, name: 'A' }), { error: number });
  }
  assert.deepEqual(await sandbox.revisions(), []);
  assert.deepEqual(await verdictsIn(sandbox), new Set(['ok']));
});

test('without a sandbox, Prefer changes nothing', async () => {
  await using service = await startTestService();
  const send = (parts: RequestParts) => ask(service.address.port, service.token, parts);
  for (const path of [{}, chunked('{"id":1,"name":"A"}')]) {
    const plain = [await send(path), await send(path)].at(-1)!;
    const headers = { ...path.headers, Prefer: 'code=503, lose=response, delay=9' };
    const response = await send({ ...path, headers });
    assert.deepEqual(comparable(response), comparable(plain));
    assert.ok(!response.headers.has('preference-applied'));
  }
});

test('the command says what it is, and asks for faults itself', async () => {
  const cwd = testFolder();
  const database = 'sqlite:./sandbox/plant-store.db';
  const args = ['--prefer', 'code=503, times=1'];
  await using serve = await startServe(database, args, { command: 'sandbox', cwd });
  assert.equal(statSync(join(cwd, 'sandbox/plant-store.db-first-token')).mode & 0o777, 0o600);
  assert.match(serve.logged()[0]!, /"level":40,.*this is a sandbox/);
  assert.match(await (await fetch(`${serve.url}/docs`)).text(), /this is a sandbox/);
  const statuses = [];
  for (const id of [1n, 1n, 2n]) statuses.push(await sendPlant(serve.url, serve.token, id));
  assert.deepEqual(statuses, [503, 200, 503]);
});

test('the command refuses other stores, and preferences that it would ignore', async () => {
  await using service = await startTestService();
  const other = ['--database', service.database];
  const none = `sqlite:${join(service.folder, 'none.db')}`;
  const cases: [args: string[], says: RegExp, exitCode?: number][] = [
    [['sandbox', ...other], /is not the store of a sandbox/],
    [['sandbox', 'report', ...other], /is not the store of a sandbox/],
    [['sandbox', 'report', '--database', none], /there is no sandbox at .*; start one/],
    [['token', 'create', 'a', '--prefer', 'code=503', ...other], /is not the store of a sandbox/],
    [['sandbox', '--database', 'postgres://a@127.0.0.1/plants'], /has an SQLite store/, 2],
    [
      ['sandbox', '--prefer', 'code=503, tims=2', '--database', none],
      /"tims=2" in --prefer is not understood/,
      2,
    ],
  ];
  for (const [args, says, exitCode] of cases) assertFailed(await commands.run({ args }), says, exitCode);
  assert.ok(!readdirSync(service.folder).some(name => /sandbox|none/.test(name)));
});
