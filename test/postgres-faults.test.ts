import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import pg from 'pg';
import type { LoggedRequest } from './harness/client-log.ts';
import { PostgresProxy } from './harness/postgres-proxy.ts';
import { OWNER_PASSWORD, PostgresServer } from './harness/postgres-server.ts';
import { runProgram } from './harness/program.ts';
import { createTokens, RandomLoad } from './harness/random-load.ts';
import { SEED } from './harness/seeded-random.ts';
import { until } from './harness/until.ts';
import { startTestService } from './running-service.ts';
import { assertBack, assertKept, assertUnavailable, isReady, newPlant, send } from './store-outage.ts';

/** Of all servers of this file; three of them are for superusers only. */
const SERVER_CONNECTIONS = 30;

const opened = new AsyncDisposableStack();
let server: PostgresServer;
before(async () => {
  server = opened.use(await PostgresServer.start({ max_connections: String(SERVER_CONNECTIONS) }));
});
after(() => opened.disposeAsync());

/** Somebody else's session, as the superuser. */
async function connect(database: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: database });
  client.on('error', () => {});
  await client.connect();
  return client;
}

test('a network that takes everything and brings nothing: 503 in time, and 200 once it does again', async () => {
  const database = await server.createDatabase();
  await using proxy = await PostgresProxy.start(server.port);
  await using service = await startTestService({ database: proxy.url(database) });
  const log: LoggedRequest[] = [];
  await Promise.all(Array.from({ length: 20 }, () => send(service, newPlant(), log)));
  proxy.stall();
  await assertUnavailable(service, log);
  assert.equal(await isReady(service), false);
  proxy.passAgain();
  await assertBack(service, log);
  await assertKept(database, log);
});

test('a table that somebody locks: 503 in time, and 200 once it is unlocked', async () => {
  const database = await server.createDatabase();
  await using service = await startTestService({ database });
  const log: LoggedRequest[] = [];
  await send(service, newPlant(), log);
  const other = await connect(database);
  await other.query('BEGIN; LOCK TABLE plant_revision IN ACCESS EXCLUSIVE MODE');
  await assertUnavailable(service, log);
  await other.query('COMMIT');
  await other.end();
  await assertBack(service, log);
  await assertKept(database, log);
});

test('connections are cut under load, by the network and by PostgreSQL: nothing is lost or twice, and nobody waits', async () => {
  console.log(`repeat with PLANT_STORE_TEST_SEED=${SEED}`);
  const database = await server.createDatabase();
  await using proxy = await PostgresProxy.start(server.port);
  await using first = await startTestService({ database: proxy.url(database) });
  await using second = await startTestService({ database: proxy.url(database) });
  const log: LoggedRequest[] = [];
  const urls = [() => first.url, () => second.url];
  await using load = new RandomLoad(urls, await createTokens(database), log, SEED);
  const other = await connect(database);
  for (let cut = 0; cut < 10; cut++) {
    await load.keeps(50);
    if (cut % 2 === 0) proxy.cutAll();
    else {
      await other.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
          WHERE datname = current_database() AND pid <> pg_backend_pid()`,
      );
    }
  }
  await load.keeps(50);
  await load.stop();
  await other.end();
  assert.deepEqual(
    log.filter(({ answer }) => answer === undefined || answer.status >= 500),
    [],
  );
  await assertKept(database, log);
});

test('others take the connections of the server: a service goes on with fewer, or answers 503 in time', async () => {
  await server.query(`CREATE ROLE keeper LOGIN PASSWORD '${OWNER_PASSWORD}'`);
  const database = await server.createDatabase();
  const name = new URL(database).pathname.slice(1);
  await server.query(`ALTER DATABASE ${name} OWNER TO keeper`);
  await server.query('GRANT CREATE ON SCHEMA public TO keeper', name);
  const address = server.url(name, '', 'keeper');
  const log: LoggedRequest[] = [];
  await using service = await startTestService({ database: address });
  await send(service, newPlant(), log);

  const others: pg.Client[] = [];
  const takeAll = async (): Promise<void> => {
    for (;;) {
      const client = new pg.Client({ connectionString: address });
      client.on('error', () => {});
      try {
        await client.connect();
        others.push(client);
      } catch (error) {
        assert.equal((error as { code?: string }).code, '53300');
        return;
      }
    }
  };
  const letGo = async (): Promise<void> => {
    await Promise.all(others.splice(0).map(client => client.end()));
  };
  try {
    await takeAll();
    const answers = await Promise.all(Array.from({ length: 50 }, () => send(service, newPlant(), log)));
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]), 'those it has are enough');

    const { exitCode, stderr } = await runProgram(['serve', '--database', address]);
    assert.equal(exitCode, 1);
    assert.match(stderr, /^plant-store: the store at .* has no connection left .*--connections\n$/);

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
    await letGo();
  }
  await assertBack(service, log);
  await assertKept(database, log);
});
