import assert from 'node:assert/strict';
import { once } from 'node:events';
import { suite, test } from 'node:test';
import pg from 'pg';
import { StoreUnavailable } from '../../../src/store/plant-store.ts';
import type { LoggedRequest } from '../../harness/client-log.ts';
import { openReader } from '../../harness/open-store.ts';
import { PLANT_INSERT, PostgresProxy } from '../../harness/postgres-proxy.ts';
import { OWNER_PASSWORD } from '../../harness/postgres-server.ts';
import { FREE_PORTS, startProgram } from '../../harness/program.ts';
import { RawConnection, type RawResponse, requestBytes } from '../../harness/raw-connection.ts';
import { type RunningService, startTestService } from '../../harness/running-service.ts';
import {
  assertBack,
  assertStored,
  assertUnavailable,
  isReady,
  newPlant,
  send,
} from '../../harness/store-outage.ts';
import { databaseName, openStore, postgresUnderTest } from '../../harness/store-under-test.ts';
import { until } from '../../harness/until.ts';
import { SilentHost } from './silent-host.ts';

/** The server reserves three of them for superusers. */
const SERVER_CONNECTIONS = 30;
/** Longer than the timeout of an operation. */
const LONG_MS = 3_500;
/** Much shorter than the timeout of an operation. */
const AT_ONCE_MS = 1_500;

const { server } = await postgresUnderTest({ max_connections: String(SERVER_CONNECTIONS) });

/** A session of another program. */
async function connect(database: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: database });
  client.on('error', () => {});
  await client.connect();
  return client;
}

interface Outage {
  what: string;
  begin: () => unknown;
  end: () => unknown;
  /** Each plant waits for the timeout of its statement. */
  isSlow?: true;
}

/** During a long outage plants are rejected without a wait. */
async function assertRejectedAtOnce(service: RunningService, log: LoggedRequest[]): Promise<void> {
  const since = performance.now();
  assert.equal((await send(service, newPlant(), log)).status, 503);
  const tookMs = performance.now() - since;
  assert.ok(tookMs < AT_ONCE_MS, `it took ${tookMs} ms`);
}

test('several outages: every plant gets 503 in time, and 200 afterwards', async t => {
  const database = await server.createDatabase();
  await using proxy = await PostgresProxy.start(server.port);
  // No plant waits for the long connect_timeout.
  const address = `${proxy.url(database)}?connect_timeout=60&sslmode=disable`;
  await using service = await startTestService({ database: address });
  const other = await connect(database);
  const OUTAGES: Outage[] = [
    {
      what: 'the network accepts everything and delivers nothing',
      begin: () => proxy.stall(),
      end: () => proxy.passAgain(),
    },
    {
      what: 'another session locks the table',
      begin: () => other.query('BEGIN; LOCK TABLE plant_revision IN ACCESS EXCLUSIVE MODE'),
      end: () => other.query('COMMIT'),
      isSlow: true,
    },
    { what: 'PostgreSQL is stopped', begin: () => server.stop(), end: () => server.startAgain() },
  ];
  const log: LoggedRequest[] = [];
  for (const { what, isSlow = false, begin, end } of OUTAGES) {
    await t.test(what, async () => {
      await Promise.all(Array.from({ length: 20 }, () => send(service, newPlant(), log)));
      service.logged.length = 0;
      await begin();
      try {
        await assertUnavailable(service, log);
        if (!isSlow) await assertRejectedAtOnce(service, log);
        await until('/readyz is not ready, also without plants', async () => !(await isReady(service)));
      } finally {
        await end();
      }
      await until('/readyz is ready, without a plant', () => isReady(service));
      await assertBack(service, log);
      await assertStored(database, log);
    });
  }
  await other.end();
});

test('a later request of a connection becomes the later revision; other ids do not wait for it', async () => {
  await using proxy = await PostgresProxy.start(server.port);
  await using service = await startTestService({ database: proxy.url(await server.createDatabase()) });
  using connection = await RawConnection.open(service.address.port);
  using another = await RawConnection.open(service.address.port);
  const holding = proxy.holdNext(PLANT_INSERT);
  connection.write(requestBytes(service.token, { body: '{"id":1,"name":"first"}' }));
  const held = await holding;
  connection.write(requestBytes(service.token, { body: '{"id":1,"name":"second"}' }));
  for (let id = 2; id <= 4; id++) {
    another.write(requestBytes(service.token, { body: `{"id":${id},"name":"other"}` }));
    assert.equal(revisionOf(await another.response()), '1');
  }
  await held.deliver();
  held.respond();
  const revisions = [revisionOf(await connection.response()), revisionOf(await connection.response())];
  assert.deepEqual(revisions, ['1', '2']);
});

function revisionOf({ headers }: RawResponse): string | undefined {
  return headers.get('plant-revision');
}

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

test('other programs use up the connections of the server: plants get 200 on fewer, or 503 in time', async () => {
  await server.query(`CREATE ROLE gardener LOGIN PASSWORD '${OWNER_PASSWORD}'`);
  const database = await server.createDatabase();
  const name = databaseName(database);
  await server.query(`ALTER DATABASE ${name} OWNER TO gardener`);
  await server.query('GRANT CREATE ON SCHEMA public TO gardener', name);
  const address = server.url(name, '', 'gardener');
  const log: LoggedRequest[] = [];
  await using service = await startTestService({ database: address });
  await send(service, newPlant(), log);

  const others: pg.Client[] = [];
  const takeAll = async (): Promise<void> => {
    for (;;) {
      try {
        others.push(await connect(address));
      } catch (error) {
        assert.equal((error as { code?: string }).code, '53300');
        return;
      }
    }
  };
  try {
    await takeAll();
    const since = performance.now();
    while (performance.now() - since < LONG_MS) {
      const responses = await Promise.all(Array.from({ length: 50 }, () => send(service, newPlant(), log)));
      assert.deepEqual(
        new Set(responses.map(({ status }) => status)),
        new Set([200]),
        'its open connections suffice',
      );
    }

    // Its connections are closed until the other program gets all of them.
    service.logged.length = 0;
    await until('it has no connection left', async () => {
      await server.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'plant-store'`,
      );
      await takeAll();
      return (await send(service, newPlant(), log)).status === 503;
    });
    await assertUnavailable(service, log);
    assert.equal(await isReady(service), false);
  } finally {
    await Promise.all(others.map(client => client.end()));
  }
  await assertBack(service, log);
  await assertStored(database, log);
});

const hostsDatabase = await server.createDatabase();
await (await openStore(hostsDatabase)).close();
/** Much shorter than the longest `connect_timeout`, and much longer than a fast operation. */
const SOON_MS = 20_000;

/** The URL with these hosts; `postgres` means the server of this test. */
function urlOf(hosts: string[], { connectSeconds = 60, password = '' } = {}): string {
  const { host } = new URL(hostsDatabase);
  const names = hosts.map(name => (name === 'postgres' ? host : name)).join(',');
  const url = hostsDatabase.replace(host, names).replace(/(?<=:)[^:@]+(?=@)/, own => password || own);
  return `${url}?connect_timeout=${connectSeconds}&sslmode=disable`;
}

// Concurrent, since they wait for silent hosts.
suite('silent hosts', { concurrency: true }, () => {
  test('get one attempt each, and one connect_timeout for all', async () => {
    using first = await SilentHost.listen();
    using second = await SilentHost.listen();
    const since = performance.now();
    await assert.rejects(
      openReader(urlOf([first.name, second.name], { connectSeconds: 2 })),
      /timeout expired; is PostgreSQL running, and is the address correct\?$/,
    );
    // The default is 1.5 s.
    assert.ok(performance.now() - since >= 1_900, 'connect_timeout is used');
    assert.deepEqual([first.attempts, second.attempts], [1, 1]);
  });

  // An open attempt would keep the process alive until connect_timeout.
  test('the attempt at a silent host ends as soon as another accepts writes', async () => {
    using silent = await SilentHost.listen();
    await using _reader = await openReader(urlOf(['postgres', silent.name]));
    await silent.isDisconnected();
  });

  test('a host that failed and is back is found while another host is silent', async () => {
    using silent = await SilentHost.listen();
    await using proxy = await PostgresProxy.start(server.port);
    const engine = await openStore(urlOf([new URL(proxy.url(hostsDatabase)).host, silent.name]));
    await engine.check();
    proxy.cutAll();
    // From here on the search tries the silent host first.
    const isBack = (): Promise<boolean> =>
      engine.check().then(
        () => true,
        () => false,
      );
    await until('the host is found', isBack);
    await engine[Symbol.asyncDispose]();
    await silent.isDisconnected();
  });

  test('a rejected password is sent once while another host is silent', async () => {
    using silent = await SilentHost.listen();
    await using proxy = await PostgresProxy.start(server.port);
    const { host } = new URL(proxy.url(hostsDatabase));
    const opening = openReader(urlOf([silent.name, host], { connectSeconds: 1, password: 'wrong' }));
    await assert.rejects(opening, /rejects the password/);
    assert.equal(proxy.timesAsked, 1);
  });

  test('serve ends soon after SIGTERM while it still searches its store', async () => {
    using silent = await SilentHost.listen();
    const serve = startProgram(['serve', '--database', urlOf([silent.name]), ...FREE_PORTS]);
    const ended = once(serve, 'exit');
    await until('serve connects to the silent host', () => silent.attempts > 0);
    serve.kill('SIGTERM');
    const timer = setTimeout(() => serve.kill('SIGKILL'), SOON_MS);
    assert.deepEqual(await ended, [1, null]);
    clearTimeout(timer);
  });
});
