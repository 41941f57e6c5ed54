import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { NewPlant } from '../src/contract/plant.ts';
import {
  type PlantWrite,
  type StorageEngine,
  StoreUnavailable,
  type WriteResult,
} from '../src/store/plant-store.ts';
import { SEED, seededRandom } from './harness/seeded-random.ts';
import { until } from './harness/until.ts';
import { databaseName, openForReading, openStore, postgresUnderTest } from './store-under-test.ts';

const INSTANCES = 3;
const BATCHES_OF_AN_INSTANCE = 30;
const BATCH_PLANTS = 50;
/** As many as a batch has, so that each meets nearly every plant of each other. */
const IDS = 60;
const OPENINGS = 10;
const OPENING_ROUNDS = 3;

// Looked for sooner than by default, so that two that wait for each other are found before a statement times out.
const under = await postgresUnderTest({ deadlock_timeout: '20ms', max_connections: '200' });

/** What an instance was told of a write: nothing, where a slow machine was out of time. */
interface Told {
  write: PlantWrite;
  result: WriteResult | undefined;
}

/** Batches of plants that all instances write, each batch in an order of its own, some ids in it several times. */
async function writeAtRandom(engine: StorageEngine, instance: number): Promise<Told[]> {
  const random = seededRandom(SEED * INSTANCES + instance);
  const plant = (): NewPlant => ({ id: BigInt(random(IDS)), name: String(random(3)) });
  const batches = Array.from({ length: BATCHES_OF_AN_INSTANCE }, () =>
    Array.from({ length: BATCH_PLANTS }, () => ({ plant: plant(), recordedBy: instance })),
  );
  const told: Told[] = [];
  // As many side by side as the service would have.
  const remaining = batches.values();
  await Promise.all(
    Array.from({ length: engine.commitsInFlightMax }, async () => {
      for (const batch of remaining) {
        const results = await engine.commit(batch).catch(error => {
          assert.ok(error instanceof StoreUnavailable, error);
          return [];
        });
        told.push(...batch.map((write, index) => ({ write, result: results[index] })));
      }
    }),
  );
  return told;
}

/** Deadlocks that the server has ended in this database, once all connections to it are closed. */
async function deadlocks(database: string): Promise<string> {
  const name = databaseName(database);
  // A connection counts what it has seen when it ends.
  await until('the connections are gone', async () => {
    const rows = await under.server.query(`SELECT pid FROM pg_stat_activity WHERE datname = '${name}'`);
    return rows.length === 0;
  });
  const [row] = await under.server.query(
    `SELECT deadlocks FROM pg_stat_database WHERE datname = '${name}' AND xact_commit > 0`,
  );
  return String(row!.deadlocks);
}

suite('several instances on one database', () => {
  test('write batches of the same ids in any order: each made a revision of its own, without a deadlock', async () => {
    console.log(`repeat with PLANT_STORE_TEST_SEED=${SEED}`);
    const database = await under.newDatabase();
    const told: Told[] = [];
    {
      await using opened = new AsyncDisposableStack();
      const engines: StorageEngine[] = [];
      while (engines.length < INSTANCES) engines.push(opened.use(await openStore(database)));
      told.push(...(await Promise.all(engines.map(writeAtRandom))).flat());
    }
    assert.equal(told.length, INSTANCES * BATCHES_OF_AN_INSTANCE * BATCH_PLANTS);

    await using reader = await openForReading(database);
    const revisions = await Array.fromAsync(reader.revisions());
    const stored = new Map(revisions.map(each => [`${each.plant.id} ${each.revision}`, each]));
    const made = new Set<string>();
    const unknown = new Map<string, number>();
    for (const { write, result } of told) {
      const { plant, recordedBy } = write;
      if (result === undefined) {
        const content = `${plant.id} ${plant.name} ${recordedBy}`;
        unknown.set(content, (unknown.get(content) ?? 0) + 1);
        continue;
      }
      const key = `${plant.id} ${result.revision}`;
      // Accepted: it is a revision, this one.
      assert.deepEqual(stored.get(key)?.plant, plant);
      if (result.outcome === 'unchanged') continue;
      assert.equal(result.outcome, result.revision === 1 ? 'created' : 'revised');
      assert.equal(stored.get(key)?.recordedBy, recordedBy);
      assert.ok(!made.has(key), `${key} was made twice`);
      made.add(key);
    }
    assert.ok(made.size > IDS, 'hardly anything was written');
    for (const [key, { plant, recordedBy }] of stored) {
      if (made.has(key)) continue;
      const content = `${plant.id} ${plant.name} ${recordedBy}`;
      const candidates = unknown.get(content) ?? 0;
      assert.ok(candidates > 0, `nobody was told of ${key}: ${content}`);
      unknown.set(content, candidates - 1);
    }
    for (const history of Map.groupBy(revisions, ({ plant }) => plant.id).values()) {
      assert.deepEqual(
        history.map(({ revision }) => revision),
        history.map((_, index) => index + 1),
      );
    }
    await reader.close();
    assert.equal(await deadlocks(database), '0');
  });

  test('ask for one id at the same time with the rule reject: one content wins on all of them', async () => {
    const database = await under.newDatabase();
    await using opened = new AsyncDisposableStack();
    const engines: StorageEngine[] = [];
    while (engines.length < INSTANCES) engines.push(opened.use(await openStore(database, 'reject')));
    for (let id = 0n; id < 50n; id++) {
      const results = await Promise.all(
        engines.flatMap((engine, instance) => {
          const commit = (name: string): Promise<WriteResult[]> =>
            engine.commit([{ plant: { id, name }, recordedBy: instance }]);
          return [commit(`of instance ${instance}`), commit('of all')];
        }),
      );
      const outcomes = results.map(([result]) => result!.outcome ?? result!.refused);
      assert.equal(outcomes.filter(outcome => outcome === 'created').length, 1);
      // It won alone, or everyone who sent the same is told that it is there.
      const forAll = outcomes.filter((_, index) => index % 2 === 1);
      const kept = forAll.includes('created') ? INSTANCES : 1;
      assert.equal(outcomes.filter(outcome => outcome === 'idTaken').length, outcomes.length - kept);
    }
    await using reader = await openForReading(database);
    assert.equal((await Array.fromAsync(reader.revisions())).length, 50);
  });

  test('open an empty database at the same time: one of them makes the store, all of them have it', async () => {
    for (let round = 0; round < OPENING_ROUNDS; round++) {
      const database = await under.newDatabase();
      await using opened = new AsyncDisposableStack();
      const engines = await Promise.all(
        Array.from({ length: OPENINGS }, async () => opened.use(await openStore(database))),
      );
      assert.equal(engines.filter(({ isNew }) => isNew).length, 1);
      const results = await Promise.all(
        engines.map((engine, index) =>
          engine.commit([{ plant: { id: BigInt(index), name: 'a' }, recordedBy: 1 }]),
        ),
      );
      assert.deepEqual(
        results.flat(),
        engines.map(() => ({ outcome: 'created', revision: 1 })),
      );
      const steps = await under.sql(database, 'SELECT step FROM schema_step ORDER BY step');
      assert.deepEqual(
        steps.map(({ step }) => step),
        steps.map((_, index) => index + 1),
      );
    }
  });
});
