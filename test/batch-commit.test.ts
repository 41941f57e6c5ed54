import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { NewPlant } from '../src/contract/plant.ts';
import type { PlantRevision, RepeatedIdRule, StorageEngine, WriteResult } from '../src/store/plant-store.ts';
import { BatchCommit } from '../src/store/postgres/batch-commit.ts';
import { Connection, type Statement } from '../src/store/postgres/connection.ts';
import { postgresAddressOf } from '../src/store/postgres/postgres-url.ts';
import { openForReading, openStore, postgresUnderTest } from './store-under-test.ts';

const under = await postgresUnderTest();

const CREATED = { outcome: 'created', revision: 1 };
const UNCHANGED = { outcome: 'unchanged', revision: 1 };

/** A real connection that keeps a record of its statements, and fails when it is told to. */
class WatchedConnection implements AsyncDisposable {
  readonly connection: Connection;
  readonly statements: Statement[] = [];
  /** Before and after the next commit is carried out; whoever throws takes it, or the answer to it, away. */
  before: (() => Promise<void>) | undefined;
  after: (() => Promise<void>) | undefined;

  private constructor(connection: Connection) {
    this.connection = connection;
    const run = connection.run.bind(connection);
    const commit = connection.commit.bind(connection);
    connection.run = (statement, waitMs) => {
      this.statements.push(statement);
      return run(statement, waitMs);
    };
    // It runs its statement with `run` above.
    connection.commit = async (statement, waitMs) => {
      const { before, after } = this;
      this.before = undefined;
      this.after = undefined;
      await before?.();
      const rows = await commit(statement, waitMs);
      await after?.();
      return rows;
    };
  }

  static async open(database: string): Promise<WatchedConnection> {
    const address = postgresAddressOf(database);
    return new WatchedConnection(await Connection.open(address, address.hosts[0]!));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.connection.close();
  }
}

function batchOf(plants: NewPlant[], repeatedIdRule: RepeatedIdRule = 'revise'): BatchCommit {
  return new BatchCommit(
    plants.map(plant => ({ plant, recordedBy: 1 })),
    repeatedIdRule,
  );
}

function commit(engine: StorageEngine, ...plants: NewPlant[]): Promise<WriteResult[]> {
  return engine.commit(plants.map(plant => ({ plant, recordedBy: 1 })));
}

function numbered(count: number, name = 'a'): NewPlant[] {
  return Array.from({ length: count }, (_, index) => ({ id: BigInt(index), name }));
}

async function stored(database: string): Promise<PlantRevision[]> {
  await using reader = await openForReading(database);
  return await Array.fromAsync(reader.revisions());
}

async function storedNames(database: string): Promise<string[]> {
  return (await stored(database)).map(({ plant, revision }) => `${plant.id} ${revision} ${plant.name}`);
}

async function cut(): Promise<never> {
  throw new Error('the connection is cut');
}

async function failSerialization(): Promise<never> {
  throw Object.assign(new Error('serialization failure'), { code: '40001', severity: 'ERROR' });
}

suite('a batch on its way into PostgreSQL', { concurrency: true }, () => {
  test('is one statement of many rows where every plant is new, and no select from arrays', async () => {
    const database = await under.newDatabase();
    await using _engine = await openStore(database);
    await using watched = await WatchedConnection.open(database);
    // One row alone, a count that is prepared, and two that are filled up to the next that is.
    let from = 0n;
    for (const count of [1, 2, 5, 6, 96, 100, 2_048]) {
      const plants = numbered(count).map(({ id, name }) => ({ id: id + from, name }));
      from += BigInt(count);
      const before = watched.statements.length;
      assert.deepEqual(
        await batchOf(plants).run(watched.connection),
        plants.map(() => CREATED),
      );
      const [statement, ...further] = watched.statements.slice(before);
      assert.deepEqual(further, []);
      assert.match(
        statement!.text,
        /^INSERT INTO plant_revision \([a-z_, ]+\)\s+VALUES \(\$1, .*\) ON CONFLICT \(id, revision\) DO NOTHING/,
      );
      assert.doesNotMatch(statement!.text, /unnest|select/i);
    }
    assert.equal((await stored(database)).length, Number(from));
    // Prepared once, and one for 5 and 6.
    assert.equal(new Set(watched.statements.map(({ name }) => name)).size, 6);
    const prepared = await watched.connection.run({ text: 'SELECT count(*) FROM pg_prepared_statements' });
    assert.deepEqual(prepared, [['6']]);
  });

  test('takes one more look where plants were stored before, and a statement for each further revision', async () => {
    const database = await under.newDatabase();
    await using engine = await openStore(database);
    await using watched = await WatchedConnection.open(database);
    await commit(engine, ...numbered(50));
    assert.deepEqual(await batchOf([...numbered(100), { id: 3n, name: 'b' }]).run(watched.connection), [
      ...numbered(100).map((_, index) => (index < 50 ? UNCHANGED : CREATED)),
      { outcome: 'revised', revision: 2 },
    ]);
    assert.deepEqual(
      watched.statements.map(({ text }) => text.slice(0, 6)),
      ['INSERT', 'SELECT', 'INSERT'],
    );
  });

  test('is settled by looking where the answer to its commit is lost', async () => {
    const database = await under.newDatabase();
    await using engine = await openStore(database);
    await using watched = await WatchedConnection.open(database);
    await commit(engine, { id: 1n, name: 'before' });
    const batch = batchOf([...numbered(3), { id: 0n, name: 'b' }]);
    watched.after = cut;
    await assert.rejects(batch.run(watched.connection), /is cut/);
    const revised = { outcome: 'revised', revision: 2 };
    assert.deepEqual(await batch.run(watched.connection), [CREATED, revised, CREATED, revised]);
    assert.deepEqual(await storedNames(database), ['0 1 a', '0 2 b', '1 1 before', '1 2 a', '2 1 a']);
  });

  test('is written again where its commit never arrived, behind what others wrote meanwhile', async () => {
    const database = await under.newDatabase();
    await using engine = await openStore(database);
    await using watched = await WatchedConnection.open(database);
    const batch = batchOf(numbered(3));
    watched.before = cut;
    await assert.rejects(batch.run(watched.connection), /is cut/);
    await engine.commit([
      { plant: { id: 1n, name: 'of another' }, recordedBy: 2 },
      { plant: { id: 2n, name: 'a' }, recordedBy: 2 },
    ]);
    assert.deepEqual(await batch.run(watched.connection), [
      CREATED,
      { outcome: 'revised', revision: 2 },
      UNCHANGED,
    ]);
    assert.deepEqual(await storedNames(database), ['0 1 a', '1 1 of another', '1 2 a', '2 1 a']);
  });

  test('is not written twice where others have added revisions before it looks', async () => {
    const database = await under.newDatabase();
    await using engine = await openStore(database);
    await using watched = await WatchedConnection.open(database);
    const batch = batchOf(numbered(2));
    watched.after = async () => {
      await commit(engine, { id: 0n, name: 'of another' });
      await cut();
    };
    await assert.rejects(batch.run(watched.connection), /is cut/);
    assert.deepEqual(await batch.run(watched.connection), [CREATED, CREATED]);
    assert.deepEqual(await storedNames(database), ['0 1 a', '0 2 of another', '1 1 a']);
  });

  test('is not written twice where the first of two with the same id was stored before', async () => {
    const database = await under.newDatabase();
    await using engine = await openStore(database);
    await using watched = await WatchedConnection.open(database);
    await commit(engine, { id: 1n, name: 'a' });
    const batch = batchOf([
      { id: 1n, name: 'a' },
      { id: 1n, name: 'b' },
    ]);
    // The first statement finds out that the id is taken; the answer to the second one is lost.
    watched.after = async () => {
      watched.after = async () => {
        await commit(engine, { id: 1n, name: 'of another' });
        await cut();
      };
    };
    await assert.rejects(batch.run(watched.connection), /is cut/);
    assert.deepEqual(await batch.run(watched.connection), [UNCHANGED, { outcome: 'revised', revision: 2 }]);
    assert.deepEqual(await storedNames(database), ['1 1 a', '1 2 b', '1 3 of another']);
  });

  test('leaves no gap where what it saw is gone when it is tried again, as after a failover', async () => {
    const database = await under.newDatabase();
    await using engine = await openStore(database);
    await using watched = await WatchedConnection.open(database);
    await commit(engine, { id: 1n, name: 'a' });
    const batch = batchOf([{ id: 1n, name: 'b' }]);
    // The first statement finds out that the id is taken; the second one is not carried out.
    watched.after = async () => {
      watched.before = failSerialization;
    };
    await assert.rejects(batch.run(watched.connection), { code: '40001' });
    await under.sql(database, 'DELETE FROM plant_revision');
    assert.deepEqual(await batch.run(watched.connection), [CREATED]);
    assert.deepEqual(await storedNames(database), ['1 1 b']);
  });

  test('does not take a plant for an earlier one of the same batch with the same content', async () => {
    const database = await under.newDatabase();
    await using _engine = await openStore(database);
    await using watched = await WatchedConnection.open(database);
    const batch = batchOf(['a', 'b', 'a'].map(name => ({ id: 1n, name })));
    // The third revision is not carried out, and sent again; then its connection is cut.
    watched.after = async () => {
      watched.after = async () => {
        watched.before = failSerialization;
      };
    };
    await assert.rejects(batch.run(watched.connection), { code: '40001' });
    watched.before = cut;
    await assert.rejects(batch.run(watched.connection), /is cut/);
    assert.deepEqual(await batch.run(watched.connection), [
      CREATED,
      { outcome: 'revised', revision: 2 },
      { outcome: 'revised', revision: 3 },
    ]);
    assert.deepEqual(await storedNames(database), ['1 1 a', '1 2 b', '1 3 a']);
  });

  test('with the rule reject tells its own plant from that of another', async () => {
    const database = await under.newDatabase();
    await using engine = await openStore(database);
    await using watched = await WatchedConnection.open(database);
    const own = batchOf([{ id: 1n, name: 'own' }], 'reject');
    watched.after = cut;
    await assert.rejects(own.run(watched.connection), /is cut/);
    assert.deepEqual(await own.run(watched.connection), [CREATED]);
    const late = batchOf([{ id: 2n, name: 'own' }], 'reject');
    watched.before = async () => {
      await commit(engine, { id: 2n, name: 'of another' });
      await cut();
    };
    await assert.rejects(late.run(watched.connection), /is cut/);
    assert.deepEqual(await late.run(watched.connection), [{ refused: 'idTaken' }]);
  });

  test("does not take for its own what is another's to the last digit, where the server says that nothing was done", async context => {
    const database = await under.newDatabase();
    await using _engine = await openStore(database);
    await using watched = await WatchedConnection.open(database);
    const { connection, statements } = watched;
    // Made at the same instant, and sent with the same token.
    const now = context.mock.method(Date, 'now', () => 0);
    const [batch, twin] = [batchOf(numbered(1)), batchOf(numbered(1))];
    now.mock.restore();
    // In this transaction it sees what was there at its begin; what comes then is a conflict: 40001.
    await connection.run({ text: 'BEGIN ISOLATION LEVEL SERIALIZABLE' });
    await connection.run({ text: 'SELECT count(*) FROM plant_revision' });
    watched.before = async () => {
      await using other = await WatchedConnection.open(database);
      assert.deepEqual(await twin.run(other.connection), [CREATED]);
    };
    await assert.rejects(batch.run(connection), { code: '40001' });
    assert.match(statements.at(-1)!.text, /^INSERT/);
    await connection.run({ text: 'ROLLBACK' });
    assert.deepEqual(await batch.run(connection), [UNCHANGED]);
  });
});

/** Makes the first statements that insert plants fail on the server, after a row of them is in. */
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

suite('a failure that passes is not answered 503', { concurrency: true }, () => {
  for (const [name, sqlState] of [
    ['a serialization failure', '40001'],
    ['a deadlock', '40P01'],
    ['a statement timeout', '57014'],
    ['a lock timeout', '55P03'],
  ] as const) {
    test(`${name} (${sqlState})`, async () => {
      const database = await under.newDatabase();
      await using engine = await openStore(database);
      await commit(engine, { id: 1n, name: 'before' });
      await failInserts(database, 3, sqlState);
      assert.deepEqual(await commit(engine, ...numbered(3), { id: 1n, name: 'a' }), [
        CREATED,
        { outcome: 'revised', revision: 2 },
        CREATED,
        { outcome: 'unchanged', revision: 2 },
      ]);
      assert.deepEqual(await storedNames(database), ['0 1 a', '1 1 before', '1 2 a', '2 1 a']);
      const [attempts] = await under.sql(database, 'SELECT last_value FROM attempt');
      assert.ok(Number(attempts!.last_value) > 3, 'it has not failed');
    });
  }

  test('but one that stays is, with the cause', async () => {
    const database = await under.newDatabase();
    await using engine = await openStore(database);
    await failInserts(database, 1_000_000, '22P02');
    await assert.rejects(commit(engine, ...numbered(1)), {
      name: 'StoreUnavailable',
      message: 'failed for the test',
    });
    assert.deepEqual(await stored(database), []);
  });
});
