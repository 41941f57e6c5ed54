import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import {
  type PlantWrite,
  type RepeatedIdRule,
  type StorageEngine,
  StoreUnavailable,
  type WriteResult,
} from '../../../src/store/plant-store.ts';
import {
  type HeldStatement,
  PLANT_INSERT,
  PLANT_LOOKUP,
  PostgresProxy,
} from '../../harness/postgres-proxy.ts';
import { openNewStore, openStore, postgresUnderTest } from '../../harness/store-under-test.ts';
import { storedRevisions } from '../../harness/stored-revisions.ts';
import { until } from '../../harness/until.ts';

const under = await postgresUnderTest();

/** Two instances on one new database, of which ours reaches it by way of a proxy. */
interface Instances extends AsyncDisposable {
  ours: StorageEngine;
  other: StorageEngine;
  proxy: PostgresProxy;
  database: string;
  /** Commits plant 1. @returns the result in words */
  commit(name: string, by?: StorageEngine): Promise<string>;
  /** Commits plant 1 by our instance, and holds its statement before PostgreSQL. */
  commitHeld(name: string, pattern?: RegExp): Promise<{ committing: Promise<string>; held: HeldStatement }>;
}

async function startInstances(repeatedIdRule: RepeatedIdRule = 'revise'): Promise<Instances> {
  const stack = new AsyncDisposableStack();
  const database = await under.newDatabase();
  const proxy = stack.use(await PostgresProxy.start(under.server.port));
  const ours = stack.use(await openStore(proxy.url(database), repeatedIdRule));
  const other = stack.use(await openStore(database, repeatedIdRule));
  const commit = async (name: string, by: StorageEngine = ours): Promise<string> => {
    // Each instance has a token of its own: by the same token in the same millisecond the rows would be the same.
    const recordedBy = by === ours ? 1 : 2;
    const [result = ''] = await shownResults(by.commit([{ plant: { id: 1n, name }, recordedBy }]));
    return result;
  };
  const commitHeld: Instances['commitHeld'] = async (name, pattern = PLANT_INSERT) => {
    const holding = proxy.holdNext(pattern);
    const committing = commit(name);
    return { committing, held: await holding };
  };
  const close = () => stack.disposeAsync();
  return { ours, other, proxy, database, commit, commitHeld, [Symbol.asyncDispose]: close };
}

function writes(...plants: [id: number, name: string][]): PlantWrite[] {
  return plants.map(([id, name]) => ({ plant: { id: BigInt(id), name }, recordedBy: 1 }));
}

async function shownResults(committing: Promise<WriteResult[]>): Promise<string[]> {
  return (await committing).map(({ rejected, outcome, revision }) => rejected ?? `${outcome} ${revision}`);
}

async function storedNames(database: string): Promise<string[]> {
  const revisions = await storedRevisions(database);
  return revisions.map(({ plant, revision }) => `${plant.id} ${revision} ${plant.name}`);
}

suite('the response to a commit is lost', () => {
  /** What happens to the statement that writes a plant, which is new and held. */
  const FATES: Record<
    string,
    (held: HeldStatement, proxy: PostgresProxy, committing: Promise<string>) => Promise<void>
  > = {
    'it is cut off': async held => {
      await held.deliver();
      held.cut();
    },
    'it never comes': held => held.deliver(),
    'the statement arrives late, after it was sent again': async (held, _proxy, committing) => {
      held.cut();
      await committing;
      await held.deliver();
    },
    'the statement arrives after the lookup': async (held, proxy) => {
      const holdingAgain = proxy.holdNext(PLANT_INSERT);
      held.cut();
      const again = await holdingAgain;
      await held.deliver();
      await again.deliver();
      again.respond();
    },
    'the statement arrives during the lookup': async (held, proxy) => {
      const holdingLookup = proxy.holdNext(PLANT_LOOKUP);
      held.cut();
      const lookup = await holdingLookup;
      await lookup.deliver();
      await held.deliver();
      lookup.respond();
    },
  };
  for (const [fate, happen] of Object.entries(FATES)) {
    test(`${fate}: the plant is stored once, and reported as created`, async () => {
      await using instances = await startInstances();
      const { committing, held } = await instances.commitHeld('oak');
      await happen(held, instances.proxy, committing);
      assert.equal(await committing, 'created 1');
      assert.deepEqual(await storedNames(instances.database), ['1 1 oak']);
    });
  }

  test('it is that of a further revision', async () => {
    await using instances = await startInstances();
    await instances.commit('elm');
    // The first revision is tried first, and is taken.
    const { committing, held: first } = await instances.commitHeld('oak');
    const holdingSecond = instances.proxy.holdNext(PLANT_INSERT);
    await first.deliver();
    first.respond();
    const second = await holdingSecond;
    await second.deliver();
    second.cut();
    assert.equal(await committing, 'revised 2');
    assert.deepEqual(await storedNames(instances.database), ['1 1 elm', '1 2 oak']);
  });

  test('a later revision of another instance does not hide it', async () => {
    await using instances = await startInstances();
    const { committing, held } = await instances.commitHeld('oak');
    await held.deliver();
    assert.equal(await instances.commit('elm', instances.other), 'revised 2');
    assert.equal(await instances.commit('ash', instances.other), 'revised 3');
    held.cut();
    assert.equal(await committing, 'created 1');
    assert.deepEqual(await storedNames(instances.database), ['1 1 oak', '1 2 elm', '1 3 ash']);
  });

  test('nor does a revision that was added during the lookup', async () => {
    await using instances = await startInstances();
    const { committing, held } = await instances.commitHeld('oak');
    const holdingLookup = instances.proxy.holdNext(PLANT_LOOKUP);
    held.cut();
    const lookup = await holdingLookup;
    await lookup.deliver();
    await held.deliver();
    assert.equal(await instances.commit('elm', instances.other), 'revised 2');
    lookup.respond();
    assert.equal(await committing, 'created 1');
    assert.deepEqual(await storedNames(instances.database), ['1 1 oak', '1 2 elm']);
  });

  for (const [rule, others, expected, stored] of [
    ['revise', 'elm', 'revised 2', ['1 1 elm', '1 2 oak']],
    ['revise', 'oak', 'unchanged 1', ['1 1 oak']],
    ['reject', 'elm', 'idTaken', ['1 1 elm']],
  ] as const) {
    test(`${rule}: another instance stored ${others} meanwhile, and oak never arrived: ${expected}`, async () => {
      await using instances = await startInstances(rule);
      const { committing, held } = await instances.commitHeld('oak');
      assert.equal(await instances.commit(others, instances.other), 'created 1');
      held.cut();
      assert.equal(await committing, expected);
      await held.deliver();
      assert.deepEqual(await storedNames(instances.database), stored);
    });
  }

  test('reject: a later plant of another instance is rejected, and this one created', async () => {
    await using instances = await startInstances('reject');
    const { committing, held } = await instances.commitHeld('oak');
    await held.deliver();
    assert.equal(await instances.commit('elm', instances.other), 'idTaken');
    held.cut();
    assert.equal(await committing, 'created 1');
    assert.deepEqual(await storedNames(instances.database), ['1 1 oak']);
  });

  test('the connection is cut during the lookup before a further revision', async () => {
    await using instances = await startInstances();
    await instances.commit('elm');
    const { committing, held: lookup } = await instances.commitHeld('oak', PLANT_LOOKUP);
    assert.equal(await instances.commit('ash', instances.other), 'revised 2');
    lookup.cut();
    assert.equal(await committing, 'revised 3');
    assert.deepEqual(await storedNames(instances.database), ['1 1 elm', '1 2 ash', '1 3 oak']);
  });

  test('a commit that cannot be looked up in time is not confirmed, and a retry finds it', async () => {
    await using instances = await startInstances();
    const { committing, held } = await instances.commitHeld('oak');
    await held.deliver();
    instances.proxy.stall();
    held.cut();
    await assert.rejects(committing, StoreUnavailable);
    instances.proxy.passAgain();
    let again: string | undefined;
    await until('the store is available', async () => {
      again = await instances.commit('oak').catch(() => undefined);
      return again !== undefined;
    });
    assert.equal(again, 'unchanged 1');
    assert.deepEqual(await storedNames(instances.database), ['1 1 oak']);
  });
});

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
    held.respond();
  }
}

suite('a batch', () => {
  test('is settled plant by plant, also several of one id, and those that another instance has', async () => {
    await using instances = await startInstances();
    const { ours, other, proxy } = instances;
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
    await using instances = await startInstances();
    const { ours, other, proxy, database } = instances;
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
    await using instances = await startInstances();
    const { ours, proxy, database } = instances;
    await ours.commit(writes([1, 'elm']));
    const holding = holdInsert(proxy, 2);
    const committing = ours.commit(writes([1, 'oak']));
    const second = await holding;
    await failInserts(database, 1, '40001');
    await under.sql(database, 'DELETE FROM plant_revision');
    await second.deliver();
    second.respond();
    assert.deepEqual(await shownResults(committing), ['created 1']);
    assert.deepEqual(await storedNames(database), ['1 1 oak']);
  });

  test('does not take a plant for an earlier one of the same batch with the same content', async () => {
    await using instances = await startInstances();
    const { ours, proxy, database } = instances;
    const holding = holdInsert(proxy, 3);
    const committing = ours.commit(writes([1, 'oak'], [1, 'elm'], [1, 'oak']));
    const third = await holding;
    await failInserts(database, 1, '40001');
    const holdingAgain = proxy.holdNext(PLANT_INSERT);
    await third.deliver();
    third.respond();
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
      await using engine = await openNewStore(under);
      await engine.commit(writes([1, 'elm']));
      await failInserts(engine.database, 3, sqlState);
      const committing = engine.commit(writes([0, 'oak'], [1, 'oak'], [1, 'oak']));
      assert.deepEqual(await shownResults(committing), ['created 1', 'revised 2', 'unchanged 2']);
      assert.deepEqual(await storedNames(engine.database), ['0 1 oak', '1 1 elm', '1 2 oak']);
      const [attempts] = await under.sql(engine.database, 'SELECT last_value FROM attempt');
      assert.ok(Number(attempts!.last_value) > 3, 'it has failed');
    });
  }

  test('is unavailable with the cause after a failure that does not pass', async () => {
    await using engine = await openNewStore(under);
    await failInserts(engine.database, 1_000_000, '22P02');
    await assert.rejects(engine.commit(writes([1, 'oak'])), {
      name: 'StoreUnavailable',
      message: 'failed for the test',
    });
    assert.deepEqual(await storedNames(engine.database), []);
  });
});

/** What somebody with an SQL client may do to a store, and what must not come of it. */
suite('a database that was tampered with', { concurrency: true }, () => {
  test('a trigger that swallows plants is named in the error, and other plants are stored', async () => {
    await using engine = await openNewStore(under);
    await under.sql(
      engine.database,
      `CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN IF NEW.name = 'swallowed' THEN RETURN NULL; END IF; RETURN NEW; END $$;
      CREATE TRIGGER swallow BEFORE INSERT ON plant_revision FOR EACH ROW EXECUTE FUNCTION swallow()`,
    );
    await assert.rejects(engine.commit(writes([1, 'swallowed'])), {
      name: 'StoreUnavailable',
      message: /accepts a plant but does not store it; check plant_revision for a trigger, /,
    });
    assert.deepEqual(await engine.commit(writes([2, 'kept'])), [{ outcome: 'created', revision: 1 }]);
  });

  test('without its primary key nothing is stored, rather than twice', async () => {
    await using engine = await openNewStore(under);
    await engine.commit(writes([1, 'oak']));
    await under.sql(engine.database, 'ALTER TABLE plant_revision DROP CONSTRAINT plant_revision_pkey');
    await assert.rejects(engine.commit(writes([1, 'oak'], [2, 'elm'])), StoreUnavailable);
    assert.deepEqual(await under.sql(engine.database, 'SELECT id, name FROM plant_revision'), [
      { id: '1', name: 'oak' },
    ]);
  });

  test('a column that changes its type under prepared statements is no outage', async () => {
    await using engine = await openNewStore(under);
    for (let count = 0; count < 2; count++) await engine.commit(writes([1, 'oak']));
    await under.sql(
      engine.database,
      'DROP VIEW plant; ALTER TABLE plant_revision ALTER COLUMN revision TYPE bigint',
    );
    for (let count = 0; count < 3; count++) {
      assert.deepEqual(await engine.commit(writes([1, 'oak'])), [{ outcome: 'unchanged', revision: 1 }]);
    }
  });
});
