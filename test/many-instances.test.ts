import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type StorageEngine, StoreUnavailable } from '../src/store/plant-store.ts';
import type { LoggedRequest } from './harness/client-log.ts';
import { SEED, seededRandom } from './harness/seeded-random.ts';
import { faultsIn } from './harness/stored-revisions.ts';
import { until } from './harness/until.ts';
import { startTestService } from './running-service.ts';
import { newPlant, send } from './store-outage.ts';
import { databaseName, openStore, postgresUnderTest } from './store-under-test.ts';

const INSTANCES = 3;
const BATCHES_OF_AN_INSTANCE = 30;
const BATCH_PLANTS = 50;
/** About as many as a batch has, so that each meets nearly every plant of each other. */
const IDS = 60;

// Looked for sooner than by default, so that a deadlock is found before a statement times out.
const under = await postgresUnderTest({ deadlock_timeout: '20ms', max_connections: '200' });

/** Writes batches of plants that all instances write, each batch in an order of its own, some ids several times. */
async function writeAtRandom(engine: StorageEngine, instance: number): Promise<void> {
  const random = seededRandom(SEED * INSTANCES + instance);
  const remaining = Array.from({ length: BATCHES_OF_AN_INSTANCE }, () =>
    Array.from({ length: BATCH_PLANTS }, () => ({
      plant: { id: BigInt(random(IDS)), name: String(random(3)) },
      recordedBy: instance,
    })),
  ).values();
  // As many at the same time as the service would have.
  await Promise.all(
    Array.from({ length: engine.commitsInFlightMax }, async () => {
      for (const batch of remaining) {
        // A slow machine may be out of time.
        await engine.commit(batch).catch(error => assert.ok(error instanceof StoreUnavailable, error));
      }
    }),
  );
}

test('instances write batches of the same ids in any order without a deadlock, and without gaps', async () => {
  console.log(`repeat with PLANT_STORE_TEST_SEED=${SEED}`);
  const database = await under.newDatabase();
  {
    await using opened = new AsyncDisposableStack();
    const engines: StorageEngine[] = [];
    while (engines.length < INSTANCES) engines.push(opened.use(await openStore(database)));
    await Promise.all(engines.map(writeAtRandom));
  }
  const [stored] = await under.sql(
    database,
    `SELECT count(*) AS revisions, count(DISTINCT id) AS plants,
      (SELECT sum(latest) FROM (SELECT max(revision) AS latest FROM plant_revision GROUP BY id) AS each) AS latest
    FROM plant_revision`,
  );
  assert.equal(stored!.plants, String(IDS));
  assert.equal(stored!.revisions, stored!.latest, 'no gaps');
  const name = databaseName(database);
  // A connection counts what it has seen when it ends.
  await until('the connections are gone', async () => {
    const rows = await under.server.query(`SELECT pid FROM pg_stat_activity WHERE datname = '${name}'`);
    return rows.length === 0;
  });
  const [row] = await under.server.query(
    `SELECT deadlocks FROM pg_stat_database WHERE datname = '${name}' AND xact_commit > 0`,
  );
  assert.equal(row!.deadlocks, '0');
});

test('of services that start together on an empty database one makes the store and the token, and all serve it', async () => {
  const database = await under.newDatabase();
  await using opened = new AsyncDisposableStack();
  const services = await Promise.all(
    Array.from({ length: 6 }, async () => opened.use(await startTestService({ database }))),
  );
  const [first, ...others] = services
    .map(({ firstToken }) => firstToken)
    .filter(token => token !== undefined);
  assert.ok(first !== undefined && others.length === 0, 'one of them makes the first token');
  const log: LoggedRequest[] = [];
  for (const service of services) {
    assert.ok(service.hasToken);
    service.token = first;
    await until('it knows the token', async () => (await send(service, newPlant(), log)).status === 200);
  }
  assert.deepEqual(await faultsIn(database, log), []);
});
