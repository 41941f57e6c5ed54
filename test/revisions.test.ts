import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type NewPlant, newPlantJson } from '../src/contract/plant.ts';
import type { PlantRevision, RepeatedIdRule } from '../src/store/plant-store.ts';
import { faultsOf, type LoggedRequest } from './harness/client-log.ts';
import { LoggingClient } from './harness/logging-client.ts';
import { SEED, seededRandom } from './harness/seeded-random.ts';
import { storedRevisions } from './harness/stored-revisions.ts';
import { type RunningService, startTestService } from './running-service.ts';
import { databaseName, enginesUnderTest } from './store-under-test.ts';

const CLIENTS = 24;
const REQUESTS_OF_A_CLIENT = 60;
/** Neighbours that a double cannot tell apart, and both ends; and some more, since instances wait for each other. */
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

const [sqlite, postgres] = await enginesUnderTest();

interface Deployment {
  name: string;
  /** How many services there are over the one database. */
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

/** Sends what each client picks at random, all at once, and each waits for its answer before it sends again. */
async function sendFromMany(services: RunningService[], token: string): Promise<LoggedRequest[][]> {
  return Promise.all(
    Array.from({ length: CLIENTS }, async (_, client) => {
      const random = seededRandom(SEED * CLIENTS + client);
      const log: LoggedRequest[] = [];
      const sender = new LoggingClient(services[client % services.length]!.url, token, log);
      for (let sent = 0; sent < REQUESTS_OF_A_CLIENT; sent++) {
        await sender.send({ id: IDS[random(IDS.length)]!, ...CONTENTS[random(CONTENTS.length)]! });
      }
      await sender.close();
      return log;
    }),
  );
}

async function withManyClients(
  { instances, newDatabase }: Deployment,
  repeatedIdRule: RepeatedIdRule,
  check: (logs: LoggedRequest[][], revisions: PlantRevision[]) => void,
): Promise<void> {
  console.log(`repeat with PLANT_STORE_TEST_SEED=${SEED}`);
  const database = await newDatabase();
  const services: RunningService[] = [];
  await using opened = new AsyncDisposableStack();
  opened.defer(async () => {
    await Promise.all(services.map(service => service[Symbol.asyncDispose]()));
  });
  while (services.length < instances) {
    services.push(await startTestService({ database, repeatedIdRule }));
  }
  const logs = await sendFromMany(services, services[0]!.token);
  const revisions = await storedRevisions(database);
  assert.deepEqual(faultsOf(logs.flat(), revisions), []);
  for (const { logged } of services) assert.deepEqual(logged, []);
  check(logs, revisions);
}

/**
 * The revisions of an id are the one order in which its requests took effect: whatever was answered before another
 * request was sent has a revision no later than that one's, and an earlier one when that one made its own.
 */
function outOfOrder(log: readonly LoggedRequest[]): string[] {
  const faults: string[] = [];
  for (const requests of Map.groupBy(log, ({ plant }) => plant.id).values()) {
    const answered = requests.toSorted((one, other) => one.answeredAt - other.answeredAt);
    let latest = 0;
    let next = 0;
    for (const request of requests.toSorted((one, other) => one.sentAt - other.sentAt)) {
      for (; answered[next]!.answeredAt < request.sentAt; next++) {
        latest = Math.max(latest, answered[next]!.answer!.revision);
      }
      const { outcome, revision } = request.answer!;
      if (revision < latest || (outcome !== 'unchanged' && revision === latest)) {
        faults.push(`${outcome} ${revision}, though ${latest} was answered before it was sent`);
      }
    }
  }
  return faults;
}

for (const deployment of DEPLOYMENTS) {
  test(`many clients on the same ids: every answer is a revision, in one order, without gaps: ${deployment.name}`, () =>
    withManyClients(deployment, 'revise', (logs, revisions) => {
      const log = logs.flat();
      assert.ok(log.every(({ answer }) => answer?.status === 200));
      assert.deepEqual(outOfOrder(log), []);
      const outcomes = Map.groupBy(log, ({ answer }) => answer!.outcome);
      assert.equal(outcomes.get('created')!.length, IDS.length);
      assert.equal(outcomes.get('created')!.length + outcomes.get('revised')!.length, revisions.length);
      assert.ok(outcomes.get('unchanged')!.length > 0, 'some sent what was stored already');
    }));

  test(`many clients with the rule reject: the first content of an id stays, and every other is rejected: ${deployment.name}`, () =>
    withManyClients(deployment, 'reject', (logs, revisions) => {
      const stored = new Map(revisions.map(({ plant }) => [plant.id, newPlantJson(plant)]));
      assert.equal(revisions.length, IDS.length);
      for (const { plant, answer } of logs.flat()) {
        if (newPlantJson(plant) === stored.get(plant.id)) {
          assert.deepEqual([answer!.status, answer!.revision], [200, 1]);
        } else {
          assert.deepEqual([answer!.status, answer!.outcome], [400, undefined]);
          assert.equal(JSON.parse(answer!.body).error, 40003);
        }
      }
    }));
}

test('the check of the order finds an answer that goes back', () => {
  const plant: NewPlant = { id: 1n, name: 'a' };
  const request = (sentAt: number, answeredAt: number, outcome: string, revision: number): LoggedRequest => {
    const answer = { status: 200, body: '', id: '1', revision, outcome, retryAfter: undefined };
    return { plant, sentAt, answeredAt, answer };
  };
  const first = request(0, 1, 'revised', 2);
  assert.deepEqual(outOfOrder([first, request(2, 3, 'unchanged', 2)]), []);
  assert.deepEqual(outOfOrder([first, request(0.5, 3, 'created', 1)]), []);
  assert.equal(outOfOrder([first, request(2, 3, 'unchanged', 1)]).length, 1);
  assert.equal(outOfOrder([first, request(2, 3, 'revised', 2)]).length, 1);
});
