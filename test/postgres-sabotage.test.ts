import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { type PlantWrite, StoreUnavailable } from '../src/store/plant-store.ts';
import { Connection } from '../src/store/postgres/connection.ts';
import { PostgresEngine } from '../src/store/postgres/postgres-engine.ts';
import { type PostgresAddress, postgresAddressOf } from '../src/store/postgres/postgres-url.ts';
import { PostgresServer } from './harness/postgres-server.ts';

/** What somebody with an SQL client may do to a store, and what must not come of it. */
suite('a database that was tampered with', () => {
  let server: PostgresServer;
  before(async () => {
    server = await PostgresServer.start();
  });
  after(async () => await server[Symbol.asyncDispose]());

  interface OpenStore extends AsyncDisposable {
    engine: PostgresEngine;
    address: PostgresAddress;
    sql(text: string): Promise<Record<string, unknown>[]>;
  }

  async function newStore(): Promise<OpenStore> {
    const address = postgresAddressOf(await server.createDatabase());
    const engine = await PostgresEngine.open({ address, repeatedIdRule: 'revise', connections: 2 });
    return {
      engine,
      address,
      sql: text => server.query(text, address.database),
      [Symbol.asyncDispose]: () => engine.close(),
    };
  }

  function write(id: bigint, name: string): PlantWrite {
    return { plant: { id, name }, recordedBy: 1 };
  }

  test('a trigger that swallows plants is named in the error, and other plants are kept', async () => {
    await using store = await newStore();
    await store.sql(`
      CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN IF NEW.name = 'swallowed' THEN RETURN NULL; END IF; RETURN NEW; END $$;
      CREATE TRIGGER swallow BEFORE INSERT ON plant_revision FOR EACH ROW EXECUTE FUNCTION swallow()`);
    await assert.rejects(store.engine.commit([write(1n, 'swallowed')]), (error: unknown) => {
      assert.ok(error instanceof StoreUnavailable);
      assert.match(error.message, /takes a plant and does not keep it; look for a trigger, /);
      return true;
    });
    assert.deepEqual(await store.engine.commit([write(2n, 'kept')]), [{ outcome: 'created', revision: 1 }]);
  });

  test('without its primary key nothing is stored, rather than twice', async () => {
    await using store = await newStore();
    await store.engine.commit([write(1n, 'oak')]);
    await store.sql('ALTER TABLE plant_revision DROP CONSTRAINT plant_revision_pkey');
    await assert.rejects(store.engine.commit([write(1n, 'oak'), write(2n, 'elm')]), StoreUnavailable);
    assert.deepEqual(await store.sql('SELECT id, name FROM plant_revision'), [{ id: '1', name: 'oak' }]);
  });

  test('a unique name keeps out the plants that repeat one, and no other', async () => {
    await using store = await newStore();
    await store.sql('CREATE UNIQUE INDEX ON plant_revision (name)');
    await store.engine.commit([write(1n, 'oak')]);
    await assert.rejects(store.engine.commit([write(2n, 'oak')]), StoreUnavailable);
    assert.deepEqual(await store.engine.commit([write(3n, 'elm')]), [{ outcome: 'created', revision: 1 }]);
  });

  test('a column that changes its type under prepared statements is no outage', async () => {
    await using store = await newStore();
    await store.engine.commit([write(1n, 'oak')]);
    await store.engine.commit([write(1n, 'oak')]);
    await store.sql('DROP VIEW plant; ALTER TABLE plant_revision ALTER COLUMN revision TYPE bigint');
    for (let count = 0; count < 3; count++) {
      assert.deepEqual(await store.engine.commit([write(1n, 'oak')]), [
        { outcome: 'unchanged', revision: 1 },
      ]);
    }
  });

  test('warnings arrive whatever is set for the role, and a commit waits for what it waited for', async () => {
    await using store = await newStore();
    await store.sql('ALTER ROLE postgres SET client_min_messages = error');
    await store.sql('ALTER ROLE postgres SET synchronous_commit = local');
    const [host] = store.address.hosts;
    const connection = await Connection.open(store.address, host!);
    try {
      const shown = async (name: string): Promise<unknown> =>
        (await connection.run({ text: `SHOW ${name}` }))[0]![0];
      assert.equal(await shown('client_min_messages'), 'warning');
      assert.equal(await shown('synchronous_commit'), 'local');
      // Not even where the default becomes another one while the connection lasts.
      assert.equal(
        (
          await connection.run({
            text: `SELECT source FROM pg_settings WHERE name = 'synchronous_commit'`,
          })
        )[0]![0],
        'session',
      );
    } finally {
      await connection.close();
      await store.sql('ALTER ROLE postgres RESET ALL');
    }
  });
});
