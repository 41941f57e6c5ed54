import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { suite, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import { type Clock, SYSTEM_CLOCK } from '../../../src/core/clock.ts';
import { StoreUnavailable } from '../../../src/core/commit/store-errors.ts';
import { PgConnection } from '../../../src/engines/postgres/connections/pg-connection.ts';
import { NoResponse } from '../../../src/engines/postgres/postgres-errors.ts';
import { postgresAddressOf } from '../../../src/engines/postgres/postgres-url.ts';
import type { LoggedRequest } from '../../harness/client-log.ts';
import { listen } from '../../harness/loopback-server.ts';
import { openReader } from '../../harness/open-store.ts';
import { PostgresProxy } from '../../harness/postgres-proxy.ts';
import { OWNER_PASSWORD } from '../../harness/postgres-server.ts';
import { FREE_PORTS, startProgram } from '../../harness/program.ts';
import { type RunningService, startTestService } from '../../harness/running-service.ts';
import { assertBack, assertUnavailable, isReady, newPlant, send } from '../../harness/store-outage.ts';
import { databaseName, openStore, postgresUnderTest } from '../../harness/store-under-test.ts';
import { faultsIn } from '../../harness/stored-revisions.ts';
import { until } from '../../harness/until.ts';

/** Longer than the timeout of an operation. */
const LONG_MS = 3_500;
/** Much shorter than the timeout of an operation. */
const AT_ONCE_MS = 1_500;

const { server } = await postgresUnderTest();
const hostsDatabase = await server.createDatabase();
await (await openStore(hostsDatabase)).close();

function openConnection(database: string, clock?: Clock): Promise<PgConnection> {
  const address = postgresAddressOf(database);
  return PgConnection.open(address, address.hosts[0]!, LONG_MS, new AbortController().signal, clock);
}

/** During a long outage plants are rejected without a wait. A busy machine can delay some. */
async function assertRejectedAtOnce(service: RunningService, log: LoggedRequest[]): Promise<void> {
  await until('a plant is rejected at once', async () => {
    assert.equal((await send(service, newPlant(), log)).status, 503);
    const { sentAt, respondedAt } = log.at(-1)!;
    return respondedAt - sentAt < AT_ONCE_MS;
  });
}

test('several outages: every plant gets 503 in time, and 200 afterwards', async t => {
  const database = await server.createDatabase();
  await using proxy = await PostgresProxy.start(server.port);
  // No plant waits for the long connect_timeout.
  const address = `${proxy.url(database)}?connect_timeout=60&sslmode=disable`;
  await using service = await startTestService({ database: address });
  const other = new pg.Client({ connectionString: database });
  other.on('error', () => {});
  await other.connect();
  const lock = 'BEGIN; LOCK TABLE plant_revision IN ACCESS EXCLUSIVE MODE';
  const LOCKED = 'another session locks the table';
  const OUTAGES: [what: string, begin: () => unknown, end: () => unknown][] = [
    ['the network delivers nothing', () => proxy.stall(), () => proxy.passAgain()],
    [LOCKED, () => other.query(lock), () => other.query('COMMIT')],
    ['PostgreSQL is stopped', () => server.stop(), () => server.startAgain()],
  ];
  const log: LoggedRequest[] = [];
  for (const [what, begin, end] of OUTAGES) {
    await t.test(what, async () => {
      await Promise.all(Array.from({ length: 20 }, () => send(service, newPlant(), log)));
      service.logged.length = 0;
      await begin();
      try {
        await assertUnavailable(service, log);
        // Behind the lock each plant waits for the timeout of its statement.
        if (what !== LOCKED) await assertRejectedAtOnce(service, log);
        await until('/readyz is not ready, also without plants', async () => !(await isReady(service)));
      } finally {
        await end();
      }
      await until('/readyz is ready, without a plant', () => isReady(service));
      await assertBack(service, log);
      assert.deepEqual(await faultsIn(database, log), []);
    });
  }
  await other.end();
});

test('a test commit needs the table, but not the function that other engines lack', async () => {
  const database = await server.createDatabase();
  await using engine = await openStore(database);
  await engine.probe();
  const commit = 'pg_catalog.pg_logical_emit_message(boolean, text, text, boolean)';
  await server.query(`ALTER FUNCTION ${commit} RENAME TO removed`, databaseName(database));
  await engine.probe();
  await server.query('DROP TABLE plant_revision CASCADE', databaseName(database));
  await assert.rejects(engine.probe(), StoreUnavailable);
});

test('a transaction fails with its cause, also when it cannot be rolled back', async () => {
  const database = await server.createDatabase();
  await using proxy = await PostgresProxy.start(server.port);
  const connection = await openConnection(proxy.url(database));
  await assert.rejects(
    connection.transaction(async () => {
      await connection.run({ text: 'SELECT 1 / 0' }).finally(() => proxy.cutAll());
    }),
    /division by zero/,
  );
  assert.ok(connection.isBroken);
});

test('a deadline is a time of the clock of the caller', async () => {
  const clock: Clock = { ...SYSTEM_CLOCK, now: () => performance.now() + 1_000_000 };
  const connection = await openConnection(await server.createDatabase(), clock);
  connection.deadline = clock.now() + 50;
  await assert.rejects(connection.run({ text: 'SELECT pg_sleep(1)' }), NoResponse);
  connection.destroy();
});

test('connections that the server accepts too late: plants get 200 on the open one', async () => {
  let opened = 0;
  await using busy = await listen(
    createServer(async socket => {
      socket.on('error', () => {});
      // Longer than the default of connect_timeout. The first connection of a service may take 60 s.
      await wait(opened++ === 0 ? 0 : 2_500);
      const passage = connect(server.port, '127.0.0.1').on('error', () => {});
      socket.pipe(passage).pipe(socket);
    }),
  );
  const url = new URL(await server.createDatabase());
  url.port = String(busy.port);
  await using running = await startTestService({ database: url.href });
  const since = performance.now();
  let confirmed = 0;
  while (performance.now() - since < 5_000) {
    const sent = await Promise.all(Array.from({ length: 8 }, () => send(running, newPlant(), [])));
    for (const { status } of sent) assert.equal(status, 200, `after ${confirmed} plants`);
    confirmed += sent.length;
  }
  assert.ok(opened > 2, 'further connections were tried again');
});

test('the server has no connection left: plants get 200 on fewer, or 503 in time', async () => {
  const name = databaseName(await server.createDatabase());
  await server.query(`CREATE ROLE gardener LOGIN PASSWORD '${OWNER_PASSWORD}'`);
  await server.query(`ALTER DATABASE ${name} OWNER TO gardener`);
  const limit = (count: number) => server.query(`ALTER ROLE gardener CONNECTION LIMIT ${count}`);
  const database = server.url(name, '', 'gardener');
  const log: LoggedRequest[] = [];
  await using service = await startTestService({ database });
  await send(service, newPlant(), log);

  await limit(1);
  const since = performance.now();
  while (performance.now() - since < LONG_MS) {
    const responses = await Promise.all(Array.from({ length: 50 }, () => send(service, newPlant(), log)));
    const statuses = new Set(responses.map(({ status }) => status));
    assert.deepEqual(statuses, new Set([200]), 'its open connections suffice');
  }
  service.logged.length = 0;
  await limit(0);
  await server.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'gardener'`);
  await until('it has no connection left', async () => (await send(service, newPlant(), log)).status === 503);
  await assertUnavailable(service, log);
  assert.equal(await isReady(service), false);
  await limit(-1);
  await assertBack(service, log);
  assert.deepEqual(await faultsIn(database, log), []);
});

/** Much shorter than the longest `connect_timeout`, and much longer than a fast operation. */
const SOON_MS = 20_000;

/** The URL with these hosts; `postgres` means the server of this test. */
function urlOf(hosts: string[], { connectSeconds = 60, password = '' } = {}): string {
  const { host } = new URL(hostsDatabase);
  const names = hosts.map(name => (name === 'postgres' ? host : name)).join(',');
  const url = hostsDatabase.replace(host, names).replace(/(?<=:)[^:@]+(?=@)/, own => password || own);
  return `${url}?connect_timeout=${connectSeconds}&sslmode=disable`;
}

/** A host that accepts connections but sends nothing, like a machine that hangs. */
async function silentHost() {
  const attempts: Socket[] = [];
  const server = await listen(createServer(socket => attempts.push(socket.on('error', () => {}).resume())));
  const isDisconnected = () =>
    until('its connections are closed', () => attempts.length > 0 && attempts.every(({ closed }) => closed));
  return { ...server, name: `127.0.0.1:${server.port}`, attempts, isDisconnected };
}

// Concurrent, since they wait for silent hosts.
suite('silent hosts', { concurrency: true }, () => {
  test('get one attempt each, and one connect_timeout for all', async () => {
    await using first = await silentHost();
    await using second = await silentHost();
    const since = performance.now();
    await assert.rejects(
      openReader(urlOf([first.name, second.name], { connectSeconds: 2 })),
      /PostgreSQL accepted no connection in time; check whether PostgreSQL runs or hangs, /,
    );
    // The default is 1.5 s.
    assert.ok(performance.now() - since >= 1_900, 'connect_timeout is used');
    assert.deepEqual([first.attempts.length, second.attempts.length], [1, 1]);
  });

  test('a host that failed and is back is found while another host is silent', async () => {
    await using silent = await silentHost();
    await using proxy = await PostgresProxy.start(server.port);
    await using engine = await openStore(urlOf([new URL(proxy.url(hostsDatabase)).host, silent.name]));
    await engine.warnings();
    proxy.cutAll();
    // From here on the search tries the silent host first.
    const isBack = () => engine.warnings().then(Array.isArray, () => false);
    await until('the host is found', isBack);
    // An open attempt would keep the process alive until connect_timeout.
    await silent.isDisconnected();
  });

  test('a rejected password is sent once while another host is silent', async () => {
    await using silent = await silentHost();
    await using proxy = await PostgresProxy.start(server.port);
    const { host } = new URL(proxy.url(hostsDatabase));
    const opening = openReader(urlOf([silent.name, host], { connectSeconds: 5, password: 'wrong' }));
    await assert.rejects(opening, /rejects the password/);
    assert.equal(proxy.openedConnections, 1);
  });

  test('serve waits for a first connection that is slow, and says so', async () => {
    const database = await server.createDatabase();
    const { promise: isFast, resolve: becomeFast } = Promise.withResolvers<void>();
    await using slow = await listen(
      createServer(async socket => {
        socket.on('error', () => {});
        await isFast;
        const passage = connect(server.port, '127.0.0.1').on('error', () => {});
        socket.pipe(passage).pipe(socket);
      }),
    );
    const url = new URL(database);
    url.port = String(slow.port);
    const serve = startProgram(['serve', '--database', url.href, ...FREE_PORTS]);
    const text = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const)
      serve[name]!.setEncoding('utf8').on('data', chunk => (text[name] += chunk));
    const ended = once(serve, 'exit');
    await until('serve waits or ends', () => /waiting up to/.test(text.stdout) || serve.exitCode !== null);
    assert.match(text.stdout, /waiting up to 60 s for postgres:[^ ]+, which has not accepted the connection/);
    becomeFast();
    await until('serve has started', () => /Accepting plants/.test(text.stderr) || serve.exitCode !== null);
    assert.match(text.stderr, /Accepting plants/);
    serve.kill('SIGKILL');
    await ended;
  });

  test('serve ends soon after SIGTERM while it still searches its store', async () => {
    await using silent = await silentHost();
    const serve = startProgram(['serve', '--database', urlOf([silent.name]), ...FREE_PORTS]);
    const ended = once(serve, 'exit');
    await until('serve connects to the silent host', () => silent.attempts.length > 0);
    serve.kill('SIGTERM');
    const timer = setTimeout(() => serve.kill('SIGKILL'), SOON_MS);
    assert.deepEqual(await ended, [1, null]);
    clearTimeout(timer);
  });
});
