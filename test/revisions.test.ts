import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type NewPlant, newPlantJson } from '../src/contract/plant.ts';
import type { PlantRevision, RepeatedIdRule } from '../src/store/plant-store.ts';
import { Connection } from '../src/store/postgres/connection.ts';
import { postgresAddressOf } from '../src/store/postgres/postgres-url.ts';
import { faultsOf, type LoggedRequest } from './harness/client-log.ts';
import { LoggingClient } from './harness/logging-client.ts';
import { SEED, seededRandom } from './harness/seeded-random.ts';
import { faultsIn, storedRevisions } from './harness/stored-revisions.ts';
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
  { name: 'PostgreSQL', instances: 1, newDatabase: postgres.newDatabase },
  { name: 'three instances over PostgreSQL', instances: 3, newDatabase: postgres.newDatabase },
  {
    name: 'three instances over PostgreSQL, every transaction serializable',
    instances: 3,
    newDatabase: async () => {
      const database = await postgres.newDatabase();
      await postgres.sql(
        database,
        `ALTER DATABASE ${databaseName(database)} SET default_transaction_isolation = 'serializable'`,
      );
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
  test(`many clients on the same ids: every answer is a revision, in one order, without gaps: ${deployment.name}`, async () => {
    await withManyClients(deployment, 'revise', (logs, revisions) => {
      const log = logs.flat();
      assert.ok(log.every(({ answer }) => answer?.status === 200));
      assert.deepEqual(outOfOrder(log), []);

      const outcomes = Map.groupBy(log, ({ answer }) => answer!.outcome);
      assert.equal(outcomes.get('created')!.length, IDS.length);
      assert.equal(outcomes.get('created')!.length + outcomes.get('revised')!.length, revisions.length);
      assert.ok(outcomes.get('unchanged')!.length > 0, 'some sent what was stored already');
      for (const own of logs) assertAscending(own);
    });
  });

  test(`many clients with the rule reject: the first content of an id stays, and every other is refused: ${deployment.name}`, async () => {
    await withManyClients(deployment, 'reject', (logs, revisions) => {
      const kept = new Map(revisions.map(({ plant }) => [plant.id, newPlantJson(plant)]));
      assert.equal(revisions.length, IDS.length);
      for (const { plant, answer } of logs.flat()) {
        if (newPlantJson(plant) === kept.get(plant.id)) {
          assert.equal(answer!.status, 200);
          assert.equal(answer!.revision, 1);
        } else {
          assert.equal(answer!.status, 400);
          assert.equal(JSON.parse(answer!.body).error, 40003);
          assert.equal(answer!.outcome, undefined);
        }
      }
    });
  });
}

test('the connections of a service are serializable where the database says so', async () => {
  const database = await DEPLOYMENTS.at(-1)!.newDatabase();
  const address = postgresAddressOf(database);
  const connection = await Connection.open(address, address.hosts[0]!);
  assert.deepEqual(await connection.run({ text: 'SHOW transaction_isolation' }), [['serializable']]);
  await connection.close();
});

/** A client that waits for its answers never sees an id go back. */
function assertAscending(log: readonly LoggedRequest[]): void {
  for (const requests of Map.groupBy(log, ({ plant }) => plant.id).values()) {
    const seen = requests.map(({ answer }) => answer!.revision);
    assert.deepEqual(
      seen,
      seen.toSorted((one, other) => one - other),
    );
  }
}

test('the check of the order finds an answer that goes back', () => {
  const plant: NewPlant = { id: 1n, name: 'a' };
  const answer = (outcome: string, revision: number): LoggedRequest['answer'] => {
    return { status: 200, body: '', id: '1', revision, outcome, retryAfter: undefined };
  };
  const first = { plant, sentAt: 0, answeredAt: 1, answer: answer('revised', 2) };
  assert.deepEqual(
    outOfOrder([first, { plant, sentAt: 2, answeredAt: 3, answer: answer('unchanged', 2) }]),
    [],
  );
  assert.deepEqual(
    outOfOrder([first, { plant, sentAt: 0.5, answeredAt: 3, answer: answer('created', 1) }]),
    [],
  );
  assert.equal(
    outOfOrder([first, { plant, sentAt: 2, answeredAt: 3, answer: answer('unchanged', 1) }]).length,
    1,
  );
  assert.equal(
    outOfOrder([first, { plant, sentAt: 2, answeredAt: 3, answer: answer('revised', 2) }]).length,
    1,
  );
});

test('one client is told created, unchanged and revised, and its retries change nothing', async () => {
  await using service = await startTestService();
  const log: LoggedRequest[] = [];
  const client = new LoggingClient(service.url, service.token, log);
  const told: [Omit<NewPlant, 'id'>, string, number][] = [
    [{ name: 'a' }, 'created', 1],
    [{ name: 'a' }, 'unchanged', 1],
    [{ name: 'a', tag: '' }, 'revised', 2],
    [{ name: 'a', tag: '' }, 'unchanged', 2],
    [{ name: 'a' }, 'revised', 3],
  ];
  for (const [content, outcome, revision] of told) {
    const { answer } = await client.send({ id: 1n, ...content });
    assert.deepEqual([answer?.outcome, answer?.revision], [outcome, revision]);
  }
  await client.close();
  assert.deepEqual(await faultsIn(service.database, log), []);
});

test('members that are ignored and other spellings of an id make no revision', async () => {
  await using service = await startTestService();
  const log: LoggedRequest[] = [];
  const client = new LoggingClient(service.url, service.token, log);
  const plant = { id: 1000n, name: 'é' };
  const bodies = [
    '{"id":1000,"name":"é"}',
    '{"id":1e3,"name":"é"}',
    '{"name":"\\u00e9","id":1000.0,"colour":{"id":7}}',
    ' {"id": 10.00e2, "name": "é"} ',
  ];
  for (const body of bodies) await client.send(plant, { body });
  await client.close();
  assert.deepEqual(
    log.map(({ answer }) => answer?.outcome),
    ['created', 'unchanged', 'unchanged', 'unchanged'],
  );
  assert.deepEqual(await faultsIn(service.database, log), []);
});
