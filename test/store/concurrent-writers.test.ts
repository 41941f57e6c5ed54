import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newPlantJson } from '../../src/contract/plant.ts';
import { plantWrite } from '../../src/store/audit/checksum.ts';
import type { StorageEngine } from '../../src/store/open-store.ts';
import { type PlantRevision, type RepeatedIdRule, StoreUnavailable } from '../../src/store/plant-store.ts';
import { faultsOf, type LoggedRequest } from '../harness/client-log.ts';
import { LoggingClient } from '../harness/logging-client.ts';
import { type RunningService, startTestService } from '../harness/running-service.ts';
import { SEED, seededRandom } from '../harness/seeded-random.ts';
import { newPlant, send } from '../harness/store-outage.ts';
import { databaseName, openStore, postgresUnderTest, sqliteUnderTest } from '../harness/store-under-test.ts';
import { faultsIn, storedRevisions } from '../harness/stored-revisions.ts';
import { until } from '../harness/until.ts';

const CLIENTS = 24;
const REQUESTS_OF_A_CLIENT = 60;
/**
 * Neighbours that are equal as doubles, both limits, and more ids, since instances block each
 * other.
 */
const IDS = [
  ...[9007199254740992n, 9007199254740993n, -(2n ** 63n), 2n ** 63n - 1n],
  ...Array.from({ length: 16 }, (_, index) => BigInt(index)),
];
const CONTENTS = [
  { name: 'Ficus lyrata' },
  { name: 'Ficus lyrata', tag: '' },
  { name: 'Ficus lyrata', tag: 'tree' },
  { name: '' },
  { name: 'Flor-de-maio', tag: 'cactus' },
];

const INSTANCES = 3;
const BATCHES_OF_AN_INSTANCE = 30;
const BATCH_PLANTS = 50;
/** About as many as a batch has plants, so concurrent batches have most ids in common. */
const BATCH_IDS = 60;

const sqlite = sqliteUnderTest();
// PostgreSQL must detect a deadlock before a statement times out.
const postgres = await postgresUnderTest({ deadlock_timeout: '20ms', max_connections: '200' });

interface Deployment {
  name: string;
  /** Number of services on one database. */
  instances: number;
  newDatabase(): Promise<string>;
}

const DEPLOYMENTS: Deployment[] = [
  { name: 'SQLite', instances: 1, newDatabase: sqlite.newDatabase },
  { name: 'three instances over PostgreSQL', instances: 3, newDatabase: postgres.newDatabase },
  {
    name: 'three instances over PostgreSQL, every transaction serializable',
    instances: 3,
    newDatabase: async () => {
      const database = await postgres.newDatabase();
      const setting = `default_transaction_isolation = 'serializable'`;
      await postgres.sql(database, `ALTER DATABASE ${databaseName(database)} SET ${setting}`);
      assert.deepEqual(await postgres.sql(database, 'SHOW transaction_isolation'), [
        { transaction_isolation: 'serializable' },
      ]);
      return database;
    },
  },
];

/** All clients send random plants concurrently, each client one request at a time. */
async function sendFromMany(services: RunningService[], token: string): Promise<LoggedRequest[]> {
  const log: LoggedRequest[] = [];
  await Promise.all(
    Array.from({ length: CLIENTS }, async (_, client) => {
      const random = seededRandom(SEED * CLIENTS + client);
      const sender = new LoggingClient(services[client % services.length]!.url, token, log);
      for (let sent = 0; sent < REQUESTS_OF_A_CLIENT; sent++) {
        await sender.send({ id: IDS[random(IDS.length)]!, ...CONTENTS[random(CONTENTS.length)]! });
      }
      await sender.close();
    }),
  );
  return log;
}

async function withManyClients(
  { instances, newDatabase }: Deployment,
  repeatedIdRule: RepeatedIdRule,
  check: (log: LoggedRequest[], revisions: PlantRevision[]) => void,
): Promise<void> {
  console.log(`repeat with PLANT_STORE_TEST_SEED=${SEED}`);
  const database = await newDatabase();
  await using opened = new AsyncDisposableStack();
  const services: RunningService[] = [];
  while (services.length < instances) {
    services.push(opened.use(await startTestService({ database, repeatedIdRule })));
  }
  const log = await sendFromMany(services, services[0]!.token);
  const revisions = await storedRevisions(database);
  assert.deepEqual(faultsOf(log, revisions), []);
  for (const { logged } of services) assert.deepEqual(logged, []);
  check(log, revisions);
}

/**
 * Checks that the revisions of an id are in the order of its requests. A response before a request
 * was sent must have a revision that is not later, and an earlier one if the request created a
 * revision.
 */
function outOfOrder(log: readonly LoggedRequest[]): string[] {
  const faults: string[] = [];
  for (const requests of Map.groupBy(log, ({ plant }) => plant.id).values()) {
    const responded = requests.toSorted((one, other) => one.respondedAt - other.respondedAt);
    let latest = 0;
    let next = 0;
    for (const request of requests.toSorted((one, other) => one.sentAt - other.sentAt)) {
      for (; responded[next]!.respondedAt < request.sentAt; next++) {
        latest = Math.max(latest, responded[next]!.response!.revision);
      }
      const { outcome, revision } = request.response!;
      if (revision < latest || (outcome !== 'unchanged' && revision === latest)) {
        faults.push(`${outcome} ${revision}, though revision ${latest} was returned before it was sent`);
      }
    }
  }
  return faults;
}

for (const deployment of DEPLOYMENTS) {
  test(`many clients on the same ids: revisions are in the order of the requests, without gaps: ${deployment.name}`, () =>
    withManyClients(deployment, 'revise', (log, revisions) => {
      assert.ok(log.every(({ response }) => response?.status === 200));
      assert.deepEqual(outOfOrder(log), []);
      const outcomes = Map.groupBy(log, ({ response }) => response!.outcome);
      assert.equal(outcomes.get('created')!.length, IDS.length);
      assert.equal(outcomes.get('created')!.length + outcomes.get('revised')!.length, revisions.length);
      assert.ok(outcomes.get('unchanged')!.length > 0, 'some plants were stored already');
    }));
}

// The isolation of transactions changes how conflicts end. One rule shows that.
for (const deployment of DEPLOYMENTS.filter(({ name }) => !name.includes('serializable'))) {
  test(`many clients with the rule reject: the first content of an id is stored, all others are rejected: ${deployment.name}`, () =>
    withManyClients(deployment, 'reject', (log, revisions) => {
      const stored = new Map(revisions.map(({ plant }) => [plant.id, newPlantJson(plant)]));
      assert.equal(revisions.length, IDS.length);
      for (const { plant, response } of log) {
        if (newPlantJson(plant) === stored.get(plant.id)) {
          assert.deepEqual([response!.status, response!.revision], [200, 1]);
        } else {
          assert.deepEqual([response!.status, response!.outcome], [400, undefined]);
          assert.equal(JSON.parse(response!.body).error, 40003);
        }
      }
    }));
}

/** Writes batches of the same ids as the other instances, in random order, some ids repeatedly. */
async function writeAtRandom(engine: StorageEngine, instance: number): Promise<void> {
  const random = seededRandom(SEED * INSTANCES + instance);
  const remaining = Array.from({ length: BATCHES_OF_AN_INSTANCE }, () =>
    Array.from({ length: BATCH_PLANTS }, () =>
      plantWrite({ id: BigInt(random(BATCH_IDS)), name: String(random(3)) }, instance),
    ),
  ).values();
  // As many concurrent batches as in a service.
  await Promise.all(
    Array.from({ length: 4 }, async () => {
      for (const batch of remaining) {
        // On a slow machine a batch may time out.
        await engine.commit(batch).catch(error => assert.ok(error instanceof StoreUnavailable, error));
      }
    }),
  );
}

test('instances write batches of the same ids in any order without a deadlock, and without gaps', async () => {
  console.log(`repeat with PLANT_STORE_TEST_SEED=${SEED}`);
  const database = await postgres.newDatabase();
  {
    await using opened = new AsyncDisposableStack();
    const engines: StorageEngine[] = [];
    while (engines.length < INSTANCES) engines.push(opened.use(await openStore(database)));
    await Promise.all(engines.map(writeAtRandom));
  }
  const [stored] = await postgres.sql(
    database,
    `SELECT count(*) AS revisions, count(DISTINCT id) AS plants,
      (SELECT sum(latest) FROM (SELECT max(revision) AS latest FROM plant_revision GROUP BY id) AS each) AS latest
    FROM plant_revision`,
  );
  assert.equal(stored!.plants, String(BATCH_IDS));
  assert.equal(stored!.revisions, stored!.latest, 'no gaps');
  const name = databaseName(database);
  // PostgreSQL updates its statistics when a connection ends.
  await until('the connections are closed', async () => {
    const rows = await postgres.server.query(`SELECT pid FROM pg_stat_activity WHERE datname = '${name}'`);
    return rows.length === 0;
  });
  const [row] = await postgres.server.query(
    `SELECT deadlocks FROM pg_stat_database WHERE datname = '${name}' AND xact_commit > 0`,
  );
  assert.equal(row!.deadlocks, '0');
});

test('of services that start together on an empty database one creates the store and the token', async () => {
  const database = await postgres.newDatabase();
  await using opened = new AsyncDisposableStack();
  const services = await Promise.all(
    Array.from({ length: 6 }, async () => opened.use(await startTestService({ database }))),
  );
  const [first, ...others] = services
    .map(({ firstToken }) => firstToken)
    .filter(token => token !== undefined);
  assert.ok(first !== undefined && others.length === 0, 'one of them creates the first token');
  const log: LoggedRequest[] = [];
  for (const service of services) {
    assert.ok(service.hasToken);
    service.token = first;
    await until(
      'the service knows the token',
      async () => (await send(service, newPlant(), log)).status === 200,
    );
  }
  assert.deepEqual(await faultsIn(database, log), []);
});
