import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { type PlantWrite, StoreUnavailable } from '../src/store/plant-store.ts';
import { openStore, postgresUnderTest } from './store-under-test.ts';

const under = await postgresUnderTest();

function write(id: bigint, name: string): PlantWrite {
  return { plant: { id, name }, recordedBy: 1 };
}

/** What somebody with an SQL client may do to a store, and what must not come of it. */
suite('a database that was tampered with', { concurrency: true }, () => {
  test('a trigger that swallows plants is named in the error, and other plants are stored', async () => {
    const database = await under.newDatabase();
    await using engine = await openStore(database);
    await under.sql(
      database,
      `CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN IF NEW.name = 'swallowed' THEN RETURN NULL; END IF; RETURN NEW; END $$;
      CREATE TRIGGER swallow BEFORE INSERT ON plant_revision FOR EACH ROW EXECUTE FUNCTION swallow()`,
    );
    await assert.rejects(engine.commit([write(1n, 'swallowed')]), {
      name: 'StoreUnavailable',
      message: /takes a plant and does not keep it; look for a trigger, /,
    });
    assert.deepEqual(await engine.commit([write(2n, 'kept')]), [{ outcome: 'created', revision: 1 }]);
  });

  test('without its primary key nothing is stored, rather than twice', async () => {
    const database = await under.newDatabase();
    await using engine = await openStore(database);
    await engine.commit([write(1n, 'oak')]);
    await under.sql(database, 'ALTER TABLE plant_revision DROP CONSTRAINT plant_revision_pkey');
    await assert.rejects(engine.commit([write(1n, 'oak'), write(2n, 'elm')]), StoreUnavailable);
    assert.deepEqual(await under.sql(database, 'SELECT id, name FROM plant_revision'), [
      { id: '1', name: 'oak' },
    ]);
  });

  test('a unique name rejects the plants that repeat one, and no other', async () => {
    const database = await under.newDatabase();
    await using engine = await openStore(database);
    await under.sql(database, 'CREATE UNIQUE INDEX ON plant_revision (name)');
    await engine.commit([write(1n, 'oak')]);
    await assert.rejects(engine.commit([write(2n, 'oak')]), StoreUnavailable);
    assert.deepEqual(await engine.commit([write(3n, 'elm')]), [{ outcome: 'created', revision: 1 }]);
  });

  test('a column that changes its type under prepared statements is no outage', async () => {
    const database = await under.newDatabase();
    await using engine = await openStore(database);
    for (let count = 0; count < 2; count++) await engine.commit([write(1n, 'oak')]);
    await under.sql(
      database,
      'DROP VIEW plant; ALTER TABLE plant_revision ALTER COLUMN revision TYPE bigint',
    );
    for (let count = 0; count < 3; count++) {
      assert.deepEqual(await engine.commit([write(1n, 'oak')]), [{ outcome: 'unchanged', revision: 1 }]);
    }
  });
});
