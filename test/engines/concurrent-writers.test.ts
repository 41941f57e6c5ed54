import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RepeatedIdRule } from '../../src/core/commit/plant-commits.ts';
import type { PlantRevision } from '../../src/core/commit/plant-revision.ts';
import { newPlantJson } from '../../src/core/contract/plant.ts';
import type { LoggedRequest } from '../harness/client-log.ts';
import { faultsOf } from '../harness/log-faults.ts';
import { LoggingClient } from '../harness/logging-client.ts';
import { type RunningService, startTestService } from '../harness/running-service.ts';
import { SEED, seededRandom } from '../harness/seeded-random.ts';
import { newPlant, send } from '../harness/store-outage.ts';
import {
  commit,
  databaseName,
  type EngineUnderTest,
  numbered,
  openStore,
  postgresUnderTest,
  sqliteUnderTest,
} from '../harness/store-under-test.ts';
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

const sqlite = sqliteUnderTest();
// PostgreSQL must detect a deadlock before a statement times out.
const postgres = await postgresUnderTest({ deadlock_timeout: '20ms', max_connections: '200' });

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
  under: EngineUnderTest,
  instances: number,
  repeatedIdRule: RepeatedIdRule,
): Promise<{ log: LoggedRequest[]; revisions: PlantRevision[] }> {
  console.log(`repeat with PLANT_STORE_TEST_SEED=${SEED}`);
  const database = await under.newDatabase();
  await using opened = new AsyncDisposableStack();
  const services: RunningService[] = [];
  while (services.length < instances) {
    services.push(opened.use(await startTestService({ database, repeatedIdRule })));
  }
  const log = await sendFromMany(services, services[0]!.token);
  const revisions = await storedRevisions(database);
  assert.deepEqual(faultsOf(log, revisions), []);
  for (const { logged } of services) assert.deepEqual(logged, []);
  return { log, revisions };
}

for (const [under, instances] of [
  [sqlite, 1],
  [postgres, 3],
] as const) {
  test(`many clients on the same ids, ${instances} on ${under.name}: revisions are in the order of the requests, without gaps`, async () => {
    const { log, revisions } = await withManyClients(under, instances, 'revise');
    assert.ok(log.every(({ response }) => response?.status === 200));
    const outcomes = Map.groupBy(log, ({ response }) => response!.outcome);
    assert.equal(outcomes.get('created')!.length, IDS.length);
    assert.equal(outcomes.get('created')!.length + outcomes.get('revised')!.length, revisions.length);
    assert.ok(outcomes.get('unchanged')!.length > 0, 'some plants were stored already');
  });

  test(`many clients with the rule reject, ${instances} on ${under.name}: the first content of an id is stored, all others are rejected`, async () => {
    const { log, revisions } = await withManyClients(under, instances, 'reject');
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
  });
}

test('instances write batches of the same ids in opposite orders without a deadlock', async () => {
  const database = await postgres.newDatabase();
  {
    await using one = await openStore(database);
    await using other = await openStore(database);
    for (const content of 'abcdefgh') {
      const plants = numbered(500, content);
      await Promise.all([commit(one, ...plants), commit(other, ...plants.toReversed())]);
    }
  }
  const name = databaseName(database);
  // PostgreSQL updates its statistics when a connection ends.
  await until('the connections are closed', async () => {
    const rows = await postgres.server.query(`SELECT pid FROM pg_stat_activity WHERE datname = '${name}'`);
    return rows.length === 0;
  });
  const rows = await postgres.server.query(
    `SELECT deadlocks FROM pg_stat_database WHERE datname = '${name}' AND xact_commit > 0`,
  );
  assert.deepEqual(rows, [{ deadlocks: '0' }]);
});

test('of services that start together on an empty database one creates the store and the token', async () => {
  const database = await postgres.newDatabase();
  await using opened = new AsyncDisposableStack();
  const services = await Promise.all(
    Array.from({ length: 6 }, async () => opened.use(await startTestService({ database }))),
  );
  const [first = '', ...others] = services.flatMap(({ firstToken }) => firstToken ?? []);
  assert.deepEqual(others, [], 'one of them creates the first token');
  const log: LoggedRequest[] = [];
  for (const service of services) {
    service.token = first;
    const isStored = async () => (await send(service, newPlant(), log)).status === 200;
    await until('the service knows the token', isStored);
  }
  assert.deepEqual(await faultsIn(database, log), []);
});
