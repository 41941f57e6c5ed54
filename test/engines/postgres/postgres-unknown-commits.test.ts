import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { PlantWrite, RepeatedIdRule, WriteResult } from '../../../src/core/commit/plant-commits.ts';
import { StoreUnavailable } from '../../../src/core/commit/store-errors.ts';
import type { StorageEngine } from '../../../src/engines/storage-engine.ts';
import { plantWrite } from '../../harness/plant-write.ts';
import {
  type HeldStatement,
  PLANT_INSERT,
  PLANT_LOOKUP,
  PostgresProxy,
} from '../../harness/postgres-proxy.ts';
import { openNewStore, openStore, postgresUnderTest } from '../../harness/store-under-test.ts';
import { storedRevisions } from '../../harness/stored-revisions.ts';

const under = await postgresUnderTest();

/** Two instances on a new database. `ours` uses a proxy. */
async function startInstances(repeatedIdRule: RepeatedIdRule = 'revise') {
  const stack = new AsyncDisposableStack();
  const database = await under.newDatabase();
  const proxy = stack.use(await PostgresProxy.start(under.server.port));
  const ours = stack.use(await openStore(proxy.url(database), repeatedIdRule));
  const other = stack.use(await openStore(database, repeatedIdRule));
  /** Commits plant 1. @returns the result as text */
  const commit = async (
    name: string,
    by: StorageEngine = ours,
    ifRevision?: number | undefined,
  ): Promise<string> => {
    // With the same token in the same millisecond the rows of both instances would be equal.
    const recordedBy = by === ours ? 1 : 2;
    const [result = ''] = await shownResults(
      by.commit([plantWrite({ id: 1n, name }, recordedBy, ifRevision)]),
    );
    return result;
  };
  /** Commits plant 1 through `ours`. The proxy holds the statement. */
  const commitHeld = async (name: string, ifRevision?: number) => {
    const holding = proxy.holdNext(PLANT_INSERT);
    const committing = commit(name, ours, ifRevision);
    return { committing, held: await holding };
  };
  const opened = { ours, other, proxy, database, commit, commitHeld };
  return { ...opened, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

function writes(...plants: [id: number, name: string, ifRevision?: number | undefined][]): PlantWrite[] {
  return plants.map(([id, name, ifRevision]) => plantWrite({ id: BigInt(id), name }, 1, ifRevision));
}

async function shownResults(committing: Promise<WriteResult[]>): Promise<string[]> {
  return (await committing).map(result =>
    'revision' in result
      ? `${result.kind === 'confirmed' ? result.outcome : result.error} ${result.revision}`
      : result.error,
  );
}

async function storedNames(database: string): Promise<string[]> {
  const revisions = await storedRevisions(database);
  return revisions.map(({ plant, revision }) => `${plant.id} ${revision} ${plant.name}`);
}

suite('the response to a commit is lost', { concurrency: 4 }, () => {
  /** What happens to the held statement that writes a new plant. */
  const FATES: Record<
    string,
    (held: HeldStatement, proxy: PostgresProxy, committing: Promise<string>) => Promise<void>
  > = {
    'its connection is cut': async held => {
      await held.deliver();
      held.cut();
    },
    'it never arrives': held => held.deliver(),
    'the statement arrives late, after the retry': async (held, _proxy, committing) => {
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

  for (const [rule, when, others, expected, stored, ifRevision] of [
    ['revise', 'after', ['elm: revised 2', 'ash: revised 3'], 'created 1', ['1 1 oak', '1 2 elm', '1 3 ash']],
    ['reject', 'after', ['elm: idTaken'], 'created 1', ['1 1 oak']],
    ['revise', 'before', ['elm: created 1'], 'revised 2', ['1 1 elm', '1 2 oak']],
    ['revise', 'before', ['oak: created 1'], 'unchanged 1', ['1 1 oak']],
    ['reject', 'before', ['elm: created 1'], 'idTaken', ['1 1 elm']],
    ['revise', 'after', ['elm: revised 2'], 'created 1', ['1 1 oak', '1 2 elm'], 0],
    ['revise', 'before', ['elm: created 1'], 'plantChanged 1', ['1 1 elm'], 0],
    ['reject', 'before', ['elm: created 1'], 'plantChanged 1', ['1 1 elm'], 0],
    ['revise', 'before', ['oak: created 1'], 'unchanged 1', ['1 1 oak'], 0],
  ] as const) {
    const condition = ifRevision === undefined ? '' : `, if it is new`;
    test(`${rule}: another instance sends ${others} ${when} oak arrives${condition}: ${expected}`, async () => {
      await using instances = await startInstances(rule);
      const { committing, held } = await instances.commitHeld('oak', ifRevision);
      if (when === 'after') await held.deliver();
      for (const other of others) {
        const [name = ''] = other.split(':');
        assert.equal(`${name}: ${await instances.commit(name, instances.other)}`, other);
      }
      held.cut();
      assert.equal(await committing, expected);
      if (when === 'before') await held.deliver();
      assert.deepEqual(await storedNames(instances.database), stored);
    });
  }
});

/** Makes the first inserts of plants fail with these errors. */
async function failInserts(database: string, ...sqlStates: string[]): Promise<void> {
  // A rollback does not undo a sequence.
  await under.sql(
    database,
    `CREATE SEQUENCE attempt;
    CREATE FUNCTION fail() RETURNS boolean LANGUAGE plpgsql AS $$
    DECLARE failure text := ('{${sqlStates}}'::text[])[nextval('attempt')::integer];
    BEGIN
      IF failure IS NOT NULL THEN RAISE EXCEPTION 'failed for the test' USING ERRCODE = failure; END IF;
      RETURN true;
    END $$;
    ALTER TABLE plant_revision ADD CHECK (fail()) NOT VALID`,
  );
}

/** Holds the insert with this number. Lets the inserts before it pass. */
async function holdInsert(proxy: PostgresProxy, number: number): Promise<HeldStatement> {
  for (let passed = 1; ; passed++) {
    const held = await proxy.holdNext(PLANT_INSERT);
    if (passed === number) return held;
    await held.deliver();
    held.respond();
  }
}

suite('a batch', { concurrency: 4 }, () => {
  test('settles each plant: new ones, several of one id, and some of another instance', async () => {
    await using instances = await startInstances();
    const { ours, other, proxy, database } = instances;
    await other.commit(writes([3, 'elm'], [4, 'elm']));
    const committing = ours.commit(
      writes([1, 'oak'], [2, 'oak'], [2, 'oak'], [2, 'elm'], [3, 'elm'], [3, 'oak'], [4, 'oak'], [4, 'elm']),
    );
    // Round 2 contains the conflicts of round 1, and the second plants of an id.
    for (let round = 1; round <= 2; round++) {
      // In round 1, a COPY of all plants has failed before.
      const held = await holdInsert(proxy, round === 1 ? 2 : 1);
      await held.deliver();
      if (round === 1) await other.commit(writes([1, 'ash'], [2, 'ash']));
      held.cut();
    }
    const results = (await shownResults(committing)).join(', ');
    // The other instance added revision 2 between the rounds.
    const ofOneAndTwo = 'created 1, created 1, revised 3, revised 4';
    assert.equal(results, `${ofOneAndTwo}, unchanged 1, revised 2, revised 2, revised 3`);
    const stored = '1 1 oak, 1 2 ash, 2 1 oak, 2 2 ash, 2 3 oak, 2 4 elm, 3 1 elm, 3 2 oak';
    assert.equal((await storedNames(database)).join(', '), `${stored}, 4 1 elm, 4 2 oak, 4 3 elm`);
  });

  test('leaves no gap when a looked-up revision is lost before the next attempt, as in a failover', async () => {
    await using instances = await startInstances();
    const { ours, proxy, database } = instances;
    await ours.commit(writes([1, 'elm']));
    const holding = holdInsert(proxy, 2);
    const committing = ours.commit(writes([1, 'oak']));
    const second = await holding;
    await failInserts(database, '40001');
    await under.sql(database, 'DELETE FROM plant_revision');
    await second.deliver();
    second.respond();
    assert.deepEqual(await shownResults(committing), ['created 1']);
    assert.deepEqual(await storedNames(database), ['1 1 oak']);
  });

  test('decides again in order when a failover loses the plant for which it rejected two', async () => {
    await using instances = await startInstances('reject');
    const { ours, other, proxy, database } = instances;
    await other.commit(writes([1, 'elm']));
    const holding = proxy.holdNext(/synchronous_standby_names/);
    const committing = ours.commit(writes([1, 'oak'], [1, 'ash']));
    const confirmation = await holding;
    await under.sql(database, 'DELETE FROM plant_revision');
    confirmation.cut();
    assert.deepEqual(await shownResults(committing), ['created 1', 'idTaken']);
    assert.deepEqual(await storedNames(database), ['1 1 oak']);
  });

  for (const [title, first, ifRevisions, expected] of [
    ['changed', [1, 'elm'], [0, undefined], ['created 1', 'revised 2']],
    ['missing', [2, 'elm'], [3, 0], ['plantChanged 0', 'created 1']],
  ] as const) {
    test(`looks up again what was ${title} for a condition, if the lookup is not confirmed`, async () => {
      await using instances = await startInstances();
      const { ours, other, proxy, database } = instances;
      await other.commit(writes([...first]));
      const holding = proxy.holdNext(/synchronous_standby_names/);
      const committing = ours.commit(writes([1, 'oak', ifRevisions[0]]));
      const confirmation = await holding;
      await under.sql(database, 'DELETE FROM plant_revision');
      confirmation.cut();
      assert.deepEqual(await shownResults(committing), [expected[0]]);
      assert.deepEqual(await shownResults(ours.commit(writes([1, 'ash', ifRevisions[1]]))), [expected[1]]);
    });
  }

  test('does not look up again whether a plant is missing while a later one of its id may be stored', async () => {
    await using instances = await startInstances();
    const { ours, proxy, database } = instances;
    const holding = proxy.holdNext(PLANT_INSERT);
    const committing = ours.commit(writes([1, 'oak', 3], [1, 'oak']));
    const held = await holding;
    const holdingConfirmation = proxy.holdNext(/synchronous_standby_names/);
    held.cut();
    const confirmation = await holdingConfirmation;
    await held.deliver();
    await confirmation.deliver();
    confirmation.respond();
    assert.deepEqual(await shownResults(committing), ['plantChanged 0', 'created 1']);
    assert.deepEqual(await storedNames(database), ['1 1 oak']);
  });

  test('looks up the plants with a condition, and inserts the others, in their order', async () => {
    await using instances = await startInstances();
    const { ours, other, database } = instances;
    await other.commit(writes([1, 'elm'], [2, 'elm']));
    const committing = ours.commit(
      [
        writes([1, 'oak', 1], [1, 'ash', 1], [1, 'ash', 2], [2, 'elm', 7], [2, 'oak', 0]),
        writes([3, 'oak', 1], [3, 'elm'], [3, 'ash', 1], [4, 'oak', 0], [4, 'elm', 0]),
      ].flat(),
    );
    const ofStored = 'revised 2, plantChanged 2, revised 3, unchanged 1, plantChanged 1';
    const ofNew = 'plantChanged 0, created 1, revised 2, created 1, plantChanged 1';
    assert.equal((await shownResults(committing)).join(', '), `${ofStored}, ${ofNew}`);
    const stored = '1 1 elm, 1 2 oak, 1 3 ash, 2 1 elm, 3 1 elm, 3 2 ash, 4 1 oak';
    assert.equal((await storedNames(database)).join(', '), stored);
  });

  test('distinguishes two plants of the batch with the same content', async () => {
    await using instances = await startInstances();
    const { ours, proxy, database } = instances;
    const holding = holdInsert(proxy, 3);
    const committing = ours.commit(writes([1, 'oak'], [1, 'elm'], [1, 'oak']));
    const third = await holding;
    await failInserts(database, '40001');
    const holdingAgain = proxy.holdNext(PLANT_INSERT);
    await third.deliver();
    third.respond();
    (await holdingAgain).cut();
    assert.deepEqual(await shownResults(committing), ['created 1', 'revised 2', 'revised 3']);
    assert.deepEqual(await storedNames(database), ['1 1 oak', '1 2 elm', '1 3 oak']);
  });

  test('is retried after a serialization failure, a deadlock, a statement timeout and a lock timeout', async () => {
    await using engine = await openNewStore(under);
    await engine.commit(writes([1, 'elm']));
    await failInserts(engine.database, '40001', '40P01', '57014', '55P03');
    const committing = engine.commit(writes([0, 'oak'], [1, 'oak'], [1, 'oak']));
    assert.deepEqual(await shownResults(committing), ['created 1', 'revised 2', 'unchanged 2']);
    assert.deepEqual(await storedNames(engine.database), ['0 1 oak', '1 1 elm', '1 2 oak']);
  });

  test('fails with the cause after a permanent error', async () => {
    await using engine = await openNewStore(under);
    await failInserts(engine.database, '22P02');
    await assert.rejects(engine.commit(writes([1, 'oak'])), {
      name: 'StoreUnavailable',
      message: 'the server reports: failed for the test (SQLSTATE 22P02)',
    });
    assert.deepEqual(await storedNames(engine.database), []);
  });
});

/** Changes with an SQL client that the store must survive. */
suite('a modified database:', { concurrency: true }, () => {
  test('without its primary key no plant is stored, and so none twice', async () => {
    await using engine = await openNewStore(under);
    await engine.commit(writes([1, 'oak']));
    await under.sql(engine.database, 'ALTER TABLE plant_revision DROP CONSTRAINT plant_revision_pkey');
    await assert.rejects(engine.commit(writes([1, 'oak'], [2, 'elm'])), StoreUnavailable);
    assert.deepEqual(await under.sql(engine.database, 'SELECT id, name FROM plant_revision'), [
      { id: '1', name: 'oak' },
    ]);
  });

  test('no plant is stored while a column has another type, also by prepared statements', async () => {
    await using engine = await openNewStore(under);
    for (let count = 0; count < 2; count++) await engine.commit(writes([1, 'oak']));
    for (const type of ['name', 'text']) {
      await under.sql(engine.database, 'DROP VIEW IF EXISTS plant');
      await under.sql(engine.database, `ALTER TABLE plant_revision ALTER name TYPE ${type}`);
      for (const [id, name, outcome] of [
        [1, 'oak', 'unchanged'],
        [2, 'elm'.repeat(30), 'created'],
      ] as const) {
        const committing = engine.commit(writes([id, name]));
        if (type === 'text')
          assert.deepEqual(await committing, [{ kind: 'confirmed', outcome, revision: 1 }]);
        else
          await assert.rejects(
            committing,
            /plant_revision was changed[;,] `npx plant-store verify` names it/,
          );
      }
    }
  });
});
