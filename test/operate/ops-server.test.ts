import assert from 'node:assert/strict';
import { unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Metrics } from '../../src/operate/metrics.ts';
import { opsServer } from '../../src/operate/ops-server.ts';
import { ReservedAddress } from '../../src/server/listen.ts';
import { call, signIn } from '../harness/console-session.ts';
import { freePort } from '../harness/free-port.ts';
import { type HeldStatement, PostgresProxy } from '../harness/postgres-proxy.ts';
import { assertFailed, runProgram, sendPlant, startServe } from '../harness/program.ts';
import { RawConnection } from '../harness/raw-connection.ts';
import { addToken, startTestService } from '../harness/running-service.ts';
import { readyz } from '../harness/store-outage.ts';
import { postgresUnderTest } from '../harness/store-under-test.ts';
import { testFolder } from '../harness/test-folder.ts';
import { until } from '../harness/until.ts';

const { server } = await postgresUnderTest();

/** A statement that each check of the store runs once. */
const CHECK = /full_page_writes/;

test('many /readyz and /metrics share one check of PostgreSQL, and plants do not wait for it', async () => {
  await using proxy = await PostgresProxy.start(server.port);
  const database = proxy.url(await server.createDatabase());
  await using service = await startTestService({ database, connections: 1 });
  const checks = () => proxy.statements.filter(text => CHECK.test(text)).length;
  // The start has checked a moment ago, so the first requests may share that check.
  let held: HeldStatement | undefined;
  const holding = proxy.holdNext(CHECK).then(statement => (held = statement));
  while (held === undefined) await Promise.race([readyz(service), holding]);
  const before = checks();

  using connection = await RawConnection.open(service.opsAddress.port);
  const request = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`;
  connection.write(Buffer.from((request('/readyz') + request('/metrics')).repeat(20)));
  // The service reads this request after those.
  assert.equal((await fetch(`${service.opsUrl}/livez`)).status, 200);
  assert.equal(await sendPlant(service.url, service.token, 1n), 200);
  await held.deliver();
  held.respond();
  const states = new Set<string>();
  for (let count = 0; count < 40; count++) {
    const { body } = await connection.response();
    states.add(/^plant_store_store_up \d$/m.exec(body)?.[0] ?? body);
  }
  // One state of `/readyz`, and one of `/metrics`.
  assert.deepEqual([states.size, checks() - before], [2, 0]);
});

test('a plant that is sent to the operations listener gets an error that says where plants go', async () => {
  await using service = await startTestService();
  for (const method of ['POST', 'GET']) {
    const response = await fetch(`${service.opsUrl}/plants`, { method });
    const { error, message } = (await response.json()) as { error: number; message: string };
    assert.deepEqual([response.status, error], [404, 40401]);
    assert.match(message, /send POST \/plants to the address of --listen/, method);
  }
  const elsewhere = await fetch(`${service.opsUrl}/other`, { method: 'POST' });
  assert.match(await elsewhere.text(), /try GET \/livez/);
});

test('an internal error of the operations listener gets 500, and its cause is logged', async () => {
  const cause = new TypeError('a fault of ours');
  const logged: unknown[] = [];
  const ops = opsServer({
    stateReader: { read: () => Promise.reject(cause) },
    metrics: new Metrics('1', 'sqlite'),
    hostNames: [],
    page: undefined,
    log: { info: () => {}, warn: () => {}, error: details => logged.push(details) },
  });
  const { port } = await ops.listen(await ReservedAddress.reserve({ host: '127.0.0.1', port: 0 }));
  for (const path of ['readyz', 'metrics']) {
    const response = await fetch(`http://127.0.0.1:${port}/${path}`);
    assert.deepEqual(
      [response.status, logged.splice(0)],
      [500, [{ err: cause, suppressed: 0, trace_id: undefined }]],
    );
  }
  await ops.close();
});

/** Our own code fails when a statement that always selects a row selects none. */
async function selectNothing(proxy: PostgresProxy, pattern: RegExp): Promise<void> {
  (await proxy.holdNext(pattern)).respondWithoutRows();
}

test('an internal error during a statement of PostgreSQL is no outage, and is logged as it is', async () => {
  await using proxy = await PostgresProxy.start(server.port);
  const database = proxy.url(await server.createDatabase());
  const logged: [message: string, err: unknown][] = [];
  const note = (details: object, message: string) =>
    logged.push([message, (details as { err?: unknown }).err]);
  const log = { info: () => {}, warn: note, error: note };
  await using service = await startTestService({ database, log, console: { database, settings: [] } });
  const operator = await signIn(service);

  void selectNothing(proxy, /synchronous_standby_names/);
  await until('a check fails', async () => {
    return /unexpected internal error \(.*\); report it;/.test(JSON.stringify(await readyz(service)));
  });
  void selectNothing(proxy, /reltuples/);
  const counted = await call(operator, 'GET', 'revisions/count');
  assert.deepEqual([counted.status, JSON.stringify(await counted.json()).includes('internal')], [500, true]);
  assert.deepEqual(
    logged.map(([message, err]) => [message.replace(/;.*/, ''), (err as Error).name]),
    [
      ['the check of the store failed: unexpected internal error', 'TypeError'],
      ['a request of the console failed', 'TypeError'],
    ],
  );
  await until('the service is ready', async () => (await readyz(service)).status === 'ready');
});

/** While this file exists, our own code fails at each statement of SQLite that contains its text. */
const failingStatements = (file: string): string[] => [
  '--import',
  `data:text/javascript,${encodeURIComponent(`
    import { existsSync, readFileSync } from 'node:fs';
    import { DatabaseSync } from 'node:sqlite';
    const { prepare, exec } = DatabaseSync.prototype;
    const file = ${JSON.stringify(file)};
    const failing = run => function (...args) {
      if (existsSync(file) && args[0].includes(readFileSync(file, 'utf8')))
        throw new TypeError('a fault of ours');
      return run.apply(this, args);
    };
    DatabaseSync.prototype.prepare = failing(prepare);
    DatabaseSync.prototype.exec = failing(exec);`)}`,
];

test('an internal error during a statement of SQLite is no outage, and is logged as it is', async () => {
  const folder = testFolder();
  const fault = join(folder, 'fault');
  const nodeArgs = failingStatements(fault);
  const database = `sqlite:${join(folder, 'plants.db')}`;
  const opsPort = await freePort();
  await using service = await startServe(database, ['--ops', `127.0.0.1:${opsPort}`], { nodeArgs });
  const readiness = async () => (await fetch(`http://127.0.0.1:${opsPort}/readyz`)).text();
  writeFileSync(fault, '');
  await until('a check fails', async () =>
    (await readiness()).includes('unexpected internal error (a fault of ours); report it'),
  );
  assert.equal(await sendPlant(service.url, service.token, 1n), 503);
  const reported =
    /^plant-store: unexpected internal error\. Please report this:\nTypeError: a fault of ours\n +at /;
  for (const args of [['list'], ['export'], ['token', 'list'], ['verify']])
    assertFailed(await runProgram([...args, '--database', database], { nodeArgs }), reported);
  // Both stores can be opened, and only the write of a token fails.
  writeFileSync(fault, 'INSERT INTO token');
  const target = `sqlite:${join(folder, 'copy.db')}`;
  assertFailed(await runProgram(['copy', '--from', database, '--to', target], { nodeArgs }), reported);
  unlinkSync(fault);
  assert.equal(await sendPlant(service.url, service.token, 1n), 200);
  const logged = service.logged().map(line => JSON.parse(line) as { msg: string; err?: { type: string } });
  const errors = logged.flatMap(({ msg, err }) => (err ? [[msg.replace(/;.*/, ''), err.type]] : []));
  const expected = [
    'the check of the store failed: unexpected internal error',
    'the store does not confirm plants',
  ];
  for (const message of expected) assert.equal(Object.fromEntries(errors)[message], 'TypeError');
  assert.ok(
    errors.every(([, type]) => type === 'TypeError'),
    JSON.stringify(errors),
  );
});

test('an internal error while a store is opened is shown as one', async () => {
  await using proxy = await PostgresProxy.start(server.port);
  const database = proxy.url(await server.createDatabase());
  void selectNothing(proxy, /transaction_read_only/);
  assertFailed(
    await runProgram(['stats', '--database', database]),
    /^plant-store: unexpected internal error\. Please report this:\nTypeError: /,
  );
});

test('/readyz?verbose counts the cached tokens', async () => {
  await using service = await startTestService();
  const detail = async () => {
    const { checks } = (await (await fetch(`${service.opsUrl}/readyz?verbose`)).json()) as {
      checks: { name: string; detail: string }[];
    };
    return checks.find(({ name }) => name === 'tokens')!.detail;
  };
  assert.equal(await detail(), '1 token is cached and current');
  const second = await addToken(service.database, 'second');
  assert.equal(await sendPlant(service.url, second, 1n), 200);
  await until('two tokens are cached', async () => (await detail()) === '2 tokens are cached and current');
});
