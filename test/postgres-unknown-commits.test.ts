import assert from 'node:assert/strict';
import { after, suite, test } from 'node:test';
import type { NewPlant } from '../src/contract/plant.ts';
import type { PlantWrite, RepeatedIdRule, StorageEngine, WriteResult } from '../src/store/plant-store.ts';
import { faultsOf, type LoggedRequest } from './harness/client-log.ts';
import { LoggingClient } from './harness/logging-client.ts';
import { type HeldStatement, PLANT_INSERT, PLANT_LOOKUP, PostgresProxy } from './harness/postgres-proxy.ts';
import { storedRevisions } from './harness/stored-revisions.ts';
import { type RunningService, startTestService } from './running-service.ts';
import { openStore, postgresUnderTest } from './store-under-test.ts';

const under = await postgresUnderTest();
const opened = new AsyncDisposableStack();
after(() => opened.disposeAsync());

/** A service behind a proxy, and another one on the same database with a connection of its own. */
class Pair {
  readonly proxy: PostgresProxy;
  readonly #database: string;
  readonly #service: RunningService;
  readonly #other: RunningService;
  readonly #log: LoggedRequest[] = [];
  #lastId = 2n ** 53n;

  private constructor(
    database: string,
    proxy: PostgresProxy,
    service: RunningService,
    other: RunningService,
  ) {
    this.#database = database;
    this.proxy = proxy;
    this.#service = service;
    this.#other = other;
  }

  static async start(repeatedIdRule: RepeatedIdRule): Promise<Pair> {
    const database = await under.newDatabase();
    const proxy = opened.use(await PostgresProxy.start(under.server.port));
    // One connection, so that the order of batches is known.
    const settings = { repeatedIdRule, connections: 1 };
    const service = opened.use(await startTestService({ database: proxy.url(database), ...settings }));
    const other = opened.use(await startTestService({ database, ...settings }));
    return new Pair(database, proxy, service, other);
  }

  /** Contents for an id that is new. */
  newPlants(): Record<'oak' | 'elm' | 'ash', NewPlant> {
    const id = ++this.#lastId;
    return { oak: { id, name: 'oak', tag: 'tree' }, elm: { id, name: 'elm' }, ash: { id, name: 'ash' } };
  }

  /** @returns status, outcome and revision of the response, in that order */
  send(plant: NewPlant): Promise<string> {
    return this.#sendTo(this.#service, plant);
  }

  sendToOther(plant: NewPlant): Promise<string> {
    return this.#sendTo(this.#other, plant);
  }

  /** Sends a plant, and holds its statement before PostgreSQL. */
  async sendHeld(
    plant: NewPlant,
    pattern = PLANT_INSERT,
  ): Promise<{ sent: Promise<string>; held: HeldStatement }> {
    const holding = this.proxy.holdNext(pattern);
    const sent = this.send(plant);
    return { sent, held: await holding };
  }

  /** Checks that every promise was kept. @returns the names of the revisions of this plant, in their order */
  async stored(id: bigint): Promise<string[]> {
    const revisions = await storedRevisions(this.#database);
    assert.deepEqual(faultsOf(this.#log, revisions), []);
    return revisions.filter(({ plant }) => plant.id === id).map(({ plant }) => plant.name);
  }

  async #sendTo({ url }: RunningService, plant: NewPlant): Promise<string> {
    const client = new LoggingClient(url, this.#service.token, this.#log);
    const { answer } = await client.send(plant);
    await client.close();
    return answer?.status === 200 ? `200 ${answer.outcome} ${answer.revision}` : `${answer?.status}`;
  }
}

const pairs = { revise: await Pair.start('revise'), reject: await Pair.start('reject') };

suite('the response to a commit is lost', () => {
  /** What happens to the statement that writes `oak`, which is new and held. */
  const FATES: Record<string, (held: HeldStatement, pair: Pair, sent: Promise<string>) => Promise<void>> = {
    'it is cut off': async held => {
      await held.deliver();
      held.cut();
    },
    'it never comes': held => held.deliver(),
    'the statement arrives late, after it was sent again': async (held, _pair, sent) => {
      held.cut();
      await sent;
      await held.deliver();
    },
    'the statement arrives after the lookup': async (held, pair) => {
      const holdingAgain = pair.proxy.holdNext(PLANT_INSERT);
      held.cut();
      const again = await holdingAgain;
      await held.deliver();
      await again.deliver();
      again.answer();
    },
    'the statement arrives during the lookup': async (held, pair) => {
      const holdingLookup = pair.proxy.holdNext(PLANT_LOOKUP);
      held.cut();
      const lookup = await holdingLookup;
      await lookup.deliver();
      await held.deliver();
      lookup.answer();
    },
  };
  for (const [fate, happen] of Object.entries(FATES)) {
    test(`${fate}: the plant is stored once, and reported as created`, async () => {
      const pair = pairs.revise;
      const { oak } = pair.newPlants();
      const { sent, held } = await pair.sendHeld(oak);
      await happen(held, pair, sent);
      assert.equal(await sent, '200 created 1');
      assert.deepEqual(await pair.stored(oak.id), ['oak']);
    });
  }

  test('it is that of a further revision', async () => {
    const pair = pairs.revise;
    const { oak, elm } = pair.newPlants();
    await pair.send(elm);
    // The first revision is tried first, and is taken.
    const { sent, held: first } = await pair.sendHeld(oak);
    const holdingSecond = pair.proxy.holdNext(PLANT_INSERT);
    await first.deliver();
    first.answer();
    const second = await holdingSecond;
    await second.deliver();
    second.cut();
    assert.equal(await sent, '200 revised 2');
    assert.deepEqual(await pair.stored(oak.id), ['elm', 'oak']);
  });

  test('a later revision of another instance does not hide it', async () => {
    const pair = pairs.revise;
    const { oak, elm, ash } = pair.newPlants();
    const { sent, held } = await pair.sendHeld(oak);
    await held.deliver();
    assert.equal(await pair.sendToOther(elm), '200 revised 2');
    assert.equal(await pair.sendToOther(ash), '200 revised 3');
    held.cut();
    assert.equal(await sent, '200 created 1');
    assert.deepEqual(await pair.stored(oak.id), ['oak', 'elm', 'ash']);
  });

  test('nor does a revision that was added during the lookup', async () => {
    const pair = pairs.revise;
    const { oak, elm } = pair.newPlants();
    const { sent, held } = await pair.sendHeld(oak);
    const holdingLookup = pair.proxy.holdNext(PLANT_LOOKUP);
    held.cut();
    const lookup = await holdingLookup;
    await lookup.deliver();
    await held.deliver();
    assert.equal(await pair.sendToOther(elm), '200 revised 2');
    lookup.answer();
    assert.equal(await sent, '200 created 1');
    assert.deepEqual(await pair.stored(oak.id), ['oak', 'elm']);
  });

  for (const [rule, others, expected, stored] of [
    ['revise', 'elm', '200 revised 2', ['elm', 'oak']],
    ['revise', 'oak', '200 unchanged 1', ['oak']],
    ['reject', 'elm', '400', ['elm']],
  ] as const) {
    test(`${rule}: another instance stored ${others} meanwhile, and oak never arrived: ${expected}`, async () => {
      const pair = pairs[rule];
      const plants = pair.newPlants();
      const { sent, held } = await pair.sendHeld(plants.oak);
      assert.equal(await pair.sendToOther(plants[others]), '200 created 1');
      held.cut();
      assert.equal(await sent, expected);
      await held.deliver();
      assert.deepEqual(await pair.stored(plants.oak.id), stored);
    });
  }

  test('reject: a later plant of another instance is rejected, and this one created', async () => {
    const pair = pairs.reject;
    const { oak, elm } = pair.newPlants();
    const { sent, held } = await pair.sendHeld(oak);
    await held.deliver();
    assert.equal(await pair.sendToOther(elm), '400');
    held.cut();
    assert.equal(await sent, '200 created 1');
    assert.deepEqual(await pair.stored(oak.id), ['oak']);
  });

  test('the connection is cut during the lookup before a further revision', async () => {
    const pair = pairs.revise;
    const { oak, elm, ash } = pair.newPlants();
    await pair.send(elm);
    const { sent, held: lookup } = await pair.sendHeld(oak, PLANT_LOOKUP);
    assert.equal(await pair.sendToOther(ash), '200 revised 2');
    lookup.cut();
    assert.equal(await sent, '200 revised 3');
    assert.deepEqual(await pair.stored(oak.id), ['elm', 'ash', 'oak']);
  });

  test('a commit that cannot be looked up in time gets 503, and a retry finds it', async () => {
    const pair = pairs.revise;
    const { oak } = pair.newPlants();
    const { sent, held } = await pair.sendHeld(oak);
    await held.deliver();
    pair.proxy.stall();
    held.cut();
    assert.equal(await sent, '503');
    pair.proxy.passAgain();
    let again = await pair.send(oak);
    while (again === '503') again = await pair.send(oak);
    assert.equal(again, '200 unchanged 1');
    assert.deepEqual(await pair.stored(oak.id), ['oak']);
  });
});

/** An engine behind a proxy, and another one on the same database. */
interface Engines extends AsyncDisposable {
  ours: StorageEngine;
  other: StorageEngine;
  proxy: PostgresProxy;
  database: string;
}

async function startEngines(): Promise<Engines> {
  const stack = new AsyncDisposableStack();
  const database = await under.newDatabase();
  const proxy = stack.use(await PostgresProxy.start(under.server.port));
  const ours = stack.use(await openStore(proxy.url(database)));
  const other = stack.use(await openStore(database));
  return { ours, other, proxy, database, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

function writes(...plants: [id: number, name: string][]): PlantWrite[] {
  return plants.map(([id, name]) => ({ plant: { id: BigInt(id), name }, recordedBy: 1 }));
}

async function shownResults(committing: Promise<WriteResult[]>): Promise<string[]> {
  return (await committing).map(({ outcome, revision }) => `${outcome} ${revision}`);
}

async function storedNames(database: string): Promise<string[]> {
  const revisions = await storedRevisions(database);
  return revisions.map(({ plant, revision }) => `${plant.id} ${revision} ${plant.name}`);
}

/** Makes the first statements that insert plants fail on the server, after their rows are in. */
async function failInserts(database: string, times: number, sqlState: string): Promise<void> {
  // A sequence counts also what is rolled back.
  await under.sql(
    database,
    `CREATE SEQUENCE attempt;
    CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF nextval('attempt') <= ${times} THEN RAISE EXCEPTION 'failed for the test' USING ERRCODE = '${sqlState}'; END IF;
      RETURN NULL;
    END $$;
    CREATE TRIGGER fail AFTER INSERT ON plant_revision FOR EACH STATEMENT EXECUTE FUNCTION fail()`,
  );
}

/** Lets statements that insert plants pass one by one, and holds the last of them. */
async function holdInsert(proxy: PostgresProxy, number: number): Promise<HeldStatement> {
  for (let passed = 1; ; passed++) {
    const held = await proxy.holdNext(PLANT_INSERT);
    if (passed === number) return held;
    await held.deliver();
    held.answer();
  }
}

suite('a batch', () => {
  test('is settled plant by plant, also several of one id, and those that another instance has', async () => {
    await using engines = await startEngines();
    const { ours, other, proxy } = engines;
    await other.commit(writes([3, 'elm'], [4, 'elm']));
    const committing = ours.commit(
      writes([1, 'oak'], [2, 'oak'], [2, 'oak'], [2, 'elm'], [3, 'elm'], [3, 'oak'], [4, 'oak'], [4, 'elm']),
    );
    // The second round has what the first found taken, and what had to wait for the first of its id.
    for (let round = 1; round <= 2; round++) {
      const held = await proxy.holdNext(PLANT_INSERT);
      await held.deliver();
      if (round === 1) await other.commit(writes([1, 'ash'], [2, 'ash']));
      held.cut();
    }
    assert.deepEqual(await shownResults(committing), [
      'created 1',
      'created 1',
      // Another's came between the two, and in the batch they came in this order.
      'revised 3',
      'revised 4',
      'unchanged 1',
      'revised 2',
      'revised 2',
      'revised 3',
    ]);
  });

  test('with a plant that is unchanged and a revision after it is settled, and neither is written again', async () => {
    await using engines = await startEngines();
    const { ours, other, proxy, database } = engines;
    await ours.commit(writes([1, 'elm']));
    const holding = holdInsert(proxy, 2);
    const committing = ours.commit(writes([1, 'elm'], [1, 'oak']));
    const second = await holding;
    await second.deliver();
    await other.commit(writes([1, 'ash']));
    second.cut();
    assert.deepEqual(await shownResults(committing), ['unchanged 1', 'revised 2']);
    assert.deepEqual(await storedNames(database), ['1 1 elm', '1 2 oak', '1 3 ash']);
  });

  test('leaves no gap where what it looked up is gone at the next attempt, as after a failover', async () => {
    await using engines = await startEngines();
    const { ours, proxy, database } = engines;
    await ours.commit(writes([1, 'elm']));
    const holding = holdInsert(proxy, 2);
    const committing = ours.commit(writes([1, 'oak']));
    const second = await holding;
    await failInserts(database, 1, '40001');
    await under.sql(database, 'DELETE FROM plant_revision');
    await second.deliver();
    second.answer();
    assert.deepEqual(await shownResults(committing), ['created 1']);
    assert.deepEqual(await storedNames(database), ['1 1 oak']);
  });

  test('does not take a plant for an earlier one of the same batch with the same content', async () => {
    await using engines = await startEngines();
    const { ours, proxy, database } = engines;
    const holding = holdInsert(proxy, 3);
    const committing = ours.commit(writes([1, 'oak'], [1, 'elm'], [1, 'oak']));
    const third = await holding;
    await failInserts(database, 1, '40001');
    const holdingAgain = proxy.holdNext(PLANT_INSERT);
    await third.deliver();
    third.answer();
    (await holdingAgain).cut();
    assert.deepEqual(await shownResults(committing), ['created 1', 'revised 2', 'revised 3']);
    assert.deepEqual(await storedNames(database), ['1 1 oak', '1 2 elm', '1 3 oak']);
  });

  for (const [name, sqlState] of [
    ['a serialization failure', '40001'],
    ['a deadlock', '40P01'],
    ['a statement timeout', '57014'],
    ['a lock timeout', '55P03'],
  ] as const) {
    test(`is sent again after ${name} (${sqlState})`, async () => {
      const database = await under.newDatabase();
      await using engine = await openStore(database);
      await engine.commit(writes([1, 'elm']));
      await failInserts(database, 3, sqlState);
      const committing = engine.commit(writes([0, 'oak'], [1, 'oak'], [1, 'oak']));
      assert.deepEqual(await shownResults(committing), ['created 1', 'revised 2', 'unchanged 2']);
      assert.deepEqual(await storedNames(database), ['0 1 oak', '1 1 elm', '1 2 oak']);
      const [attempts] = await under.sql(database, 'SELECT last_value FROM attempt');
      assert.ok(Number(attempts!.last_value) > 3, 'it has failed');
    });
  }

  test('is unavailable with the cause after a failure that does not pass', async () => {
    const database = await under.newDatabase();
    await using engine = await openStore(database);
    await failInserts(database, 1_000_000, '22P02');
    await assert.rejects(engine.commit(writes([1, 'oak'])), {
      name: 'StoreUnavailable',
      message: 'failed for the test',
    });
    assert.deepEqual(await storedNames(database), []);
  });
});
