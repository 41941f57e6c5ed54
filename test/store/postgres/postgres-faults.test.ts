import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import pg from 'pg';
import { openReader } from '../../../src/store/open-store.ts';
import type { LoggedRequest } from '../../harness/client-log.ts';
import { PostgresProxy } from '../../harness/postgres-proxy.ts';
import { OWNER_PASSWORD } from '../../harness/postgres-server.ts';
import { startProgram } from '../../harness/program.ts';
import { createTokens, RandomLoad } from '../../harness/random-load.ts';
import { type RunningService, startTestService } from '../../harness/running-service.ts';
import { SEED } from '../../harness/seeded-random.ts';
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

/** Three of them are for superusers only. */
const SERVER_CONNECTIONS = 30;
/** Longer than an operation may take. */
const LONG_MS = 3_500;
/** Far less than an operation may take. */
const AT_ONCE_MS = 1_500;

const { server } = await postgresUnderTest({ max_connections: String(SERVER_CONNECTIONS) });

/** Somebody else's session. */
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
  /** `/readyz` asks the server, and not the table. */
  staysReady?: true;
}

/** After a long outage nobody waits for its end any more. */
async function assertRejectedAtOnce(service: RunningService, log: LoggedRequest[]): Promise<void> {
  const since = performance.now();
  assert.equal((await send(service, newPlant(), log)).status, 503);
  const tookMs = performance.now() - since;
  assert.ok(tookMs < AT_ONCE_MS, `it took ${tookMs} ms`);
}

test('one outage after another: every plant gets 503 in time, and 200 afterwards', async t => {
  const database = await server.createDatabase();
  await using proxy = await PostgresProxy.start(server.port);
  // However long the address lets a host be silent, no plant waits for that.
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
      what: 'somebody locks the table',
      begin: () => other.query('BEGIN; LOCK TABLE plant_revision IN ACCESS EXCLUSIVE MODE'),
      end: () => other.query('COMMIT'),
      staysReady: true,
    },
    { what: 'PostgreSQL is stopped', begin: () => server.stop(), end: () => server.startAgain() },
  ];
  const log: LoggedRequest[] = [];
  for (const { what, staysReady = false, begin, end } of OUTAGES) {
    await t.test(what, async () => {
      await Promise.all(Array.from({ length: 20 }, () => send(service, newPlant(), log)));
      service.logged.length = 0;
      await begin();
      try {
        await assertUnavailable(service, log);
        assert.equal(await isReady(service), staysReady);
        if (!staysReady) await assertRejectedAtOnce(service, log);
      } finally {
        await end();
      }
      await assertBack(service, log);
      await assertStored(database, log);
    });
  }
  await other.end();
});

test('connections are cut under load, by the network and by PostgreSQL: nothing is lost, and nobody gets an error', async () => {
  console.log(`repeat with PLANT_STORE_TEST_SEED=${SEED}`);
  const database = await server.createDatabase();
  await using proxy = await PostgresProxy.start(server.port);
  await using first = await startTestService({ database: proxy.url(database) });
  await using second = await startTestService({ database: proxy.url(database) });
  const log: LoggedRequest[] = [];
  const urls = [() => first.url, () => second.url];
  await using load = new RandomLoad(urls, await createTokens(database), log, SEED);
  for (let cut = 0; cut < 10; cut++) {
    await load.stores(50);
    if (cut % 2 === 0) proxy.cutAll();
    else {
      await server.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
          WHERE datname = current_database() AND pid <> pg_backend_pid()`,
        databaseName(database),
      );
    }
  }
  await load.stores(50);
  await load.stop();
  assert.deepEqual(
    log.filter(({ response }) => response === undefined || response.status >= 500),
    [],
  );
  await assertStored(database, log);
});

test('others take the connections of the server: a service goes on with fewer, or responds 503 in time', async () => {
  await server.query(`CREATE ROLE keeper LOGIN PASSWORD '${OWNER_PASSWORD}'`);
  const database = await server.createDatabase();
  const name = databaseName(database);
  await server.query(`ALTER DATABASE ${name} OWNER TO keeper`);
  await server.query('GRANT CREATE ON SCHEMA public TO keeper', name);
  const address = server.url(name, '', 'keeper');
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
        'those it has are enough',
      );
    }

    // Its own are cut, until others are quicker.
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
/** Far less than the longest `connect_timeout` here, and far more than what must not take so long. */
const SOON_MS = 20_000;

/** The address of these hosts, where `postgres` stands for the PostgreSQL of the test. */
function urlOf(hosts: string[], { connectSeconds = 60, password = '' } = {}): string {
  const { host } = new URL(hostsDatabase);
  const names = hosts.map(name => (name === 'postgres' ? host : name)).join(',');
  const url = hostsDatabase.replace(host, names).replace(/(?<=:)[^:@]+(?=@)/, own => password || own);
  return `${url}?connect_timeout=${connectSeconds}&sslmode=disable`;
}

for (const count of [1, 2]) {
  test(`${count} silent hosts: each is asked once, and connect_timeout is waited for once`, async () => {
    using hosts = new DisposableStack();
    const silent: SilentHost[] = [];
    while (silent.length < count) silent.push(hosts.use(await SilentHost.listen()));
    const since = performance.now();
    const names = silent.map(({ name }) => name);
    await assert.rejects(
      openReader(urlOf(names, { connectSeconds: 2 })),
      /timeout expired; is PostgreSQL running, and is the address right\?$/,
    );
    // The default is 1.5 s.
    assert.ok(performance.now() - since >= 1_900, 'connect_timeout counts');
    for (const { timesAsked } of silent) assert.equal(timesAsked, 1);
  });
}

// One that is not left keeps the process from its end, for as long as connect_timeout says.
test('a silent host is left as soon as another takes writes', async () => {
  using silent = await SilentHost.listen();
  await using _reader = await openReader(urlOf(['postgres', silent.name]));
  await silent.isLeft();
});

test('a host that failed and is back does not wait behind one that is silent', async () => {
  using silent = await SilentHost.listen();
  await using proxy = await PostgresProxy.start(server.port);
  const engine = await openStore(urlOf([new URL(proxy.url(hostsDatabase)).host, silent.name]));
  await engine.check();
  proxy.cutAll();
  // From here on the silent host is asked first.
  const isBack = (): Promise<boolean> =>
    engine.check().then(
      () => true,
      () => false,
    );
  await until('it is found while the other is silent', isBack);
  await engine[Symbol.asyncDispose]();
  await silent.isLeft();
});

test('a password that is rejected is sent once, however long another host is silent', async () => {
  using silent = await SilentHost.listen();
  await using proxy = await PostgresProxy.start(server.port);
  const { host } = new URL(proxy.url(hostsDatabase));
  const opening = openReader(urlOf([silent.name, host], { connectSeconds: 1, password: 'wrong' }));
  await assert.rejects(opening, /rejects the password/);
  assert.equal(proxy.timesAsked, 1);
});

test('serve ends soon after SIGTERM, also where it has not found its store yet', async () => {
  using silent = await SilentHost.listen();
  const serve = startProgram(['serve', '--database', urlOf([silent.name]), '--listen', '127.0.0.1:0']);
  const ended = once(serve, 'exit');
  await until('the silent host is asked', () => silent.timesAsked > 0);
  serve.kill('SIGTERM');
  const late = setTimeout(() => serve.kill('SIGKILL'), SOON_MS);
  assert.deepEqual(await ended, [1, null]);
  clearTimeout(late);
});
