import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { openReader, openServedStore, openTokenStore } from '../src/store/open-store.ts';
import { openStore, postgresUnderTest } from './store-under-test.ts';

const under = await postgresUnderTest();

/** Neither the service nor the command line opens it; each says the same, in one line, and no password. */
async function assertRefused(database: string, expected: RegExp, openers = OPENERS): Promise<void> {
  for (const open of openers) {
    const opening = open(database);
    // One that is opened after all would keep this process alive.
    opening.then(
      store => store.close(),
      () => {},
    );
    await assert.rejects(opening, error => {
      const { name, message } = error as Error;
      assert.equal(name, 'StoreRefused');
      assert.match(message, expected);
      assert.doesNotMatch(message, /owner.secret|\n/);
      return true;
    });
  }
}

const OPENERS: ((database: string) => Promise<{ close(): Promise<void> }>)[] = [
  database => openServedStore({ database, repeatedIdRule: 'revise', connections: 1 }),
  openTokenStore,
  openReader,
];

/** Every table, view and index of it, and its columns. */
function catalogue(database: string): Promise<Record<string, unknown>[]> {
  return under.sql(
    database,
    `SELECT relname, relkind, attname, atttypid::regtype::text AS type
    FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
    WHERE relnamespace = 'public'::regnamespace AND attnum > 0 ORDER BY relname, attnum`,
  );
}

suite('a database that is refused', { concurrency: true }, () => {
  for (const encoding of ['LATIN1', 'SQL_ASCII']) {
    test(`is one of the encoding ${encoding}`, async () => {
      const name = `plants_${encoding.toLowerCase()}`;
      await under.server.query(
        `CREATE DATABASE ${name} ENCODING '${encoding}' LOCALE 'C' TEMPLATE template0`,
      );
      await assertRefused(
        under.server.url(name),
        new RegExp(`has the encoding ${encoding}, .*make one with CREATE DATABASE .* ENCODING 'UTF8'`),
      );
      assert.deepEqual(await catalogue(under.server.url(name)), []);
    });
  }

  test('is one that a newer program has written, which stays as it is', async () => {
    const database = await under.newDatabase();
    {
      await using engine = await openStore(database);
      await engine.commit([{ plant: { id: 1n, name: 'of the newer one' }, recordedBy: 1 }]);
    }
    await under.sql(database, 'INSERT INTO schema_step VALUES (99)');
    const before = await catalogue(database);
    await assertRefused(
      database,
      /written by a newer plant-store \(schema step 99, this program knows [0-9]+\); use that one/,
    );
    assert.deepEqual(await catalogue(database), before);
    const rows = await under.sql(database, 'SELECT name FROM plant');
    assert.deepEqual(rows, [{ name: 'of the newer one' }]);
  });

  for (const [what, statement] of [
    ['a table token', 'CREATE TABLE token (id serial PRIMARY KEY, secret text)'],
    ['a table plant_revision', 'CREATE TABLE plant_revision (id integer)'],
    ['a table plant', 'CREATE TABLE plant (latin text)'],
    ['a view plant', 'CREATE VIEW plant AS SELECT 1 AS one'],
    ['a type token', 'CREATE TYPE token AS (secret text)'],
    ['a table schema_step', 'CREATE TABLE schema_step (name text)'],
    ['a table schema_step of text', 'CREATE TABLE schema_step (step text)'],
  ] as const) {
    test(`is one with ${what} of something else, which stays as it is`, async () => {
      const database = await under.newDatabase();
      await under.sql(database, statement);
      const before = await catalogue(database);
      await assertRefused(
        database,
        /something else in this database has a name that the plant store needs .*use a database, .*of its own/,
        // It is tried for two seconds, should the names be those of another start that is under way.
        what === 'a table token' ? OPENERS.slice(0, 2) : OPENERS.slice(0, 1),
      );
      assert.deepEqual(await catalogue(database), before);
    });
  }

  test('is not read where it is empty, and nothing is made in it', async () => {
    const database = await under.newDatabase();
    await assertRefused(
      database,
      /there is no plant store in this database; `npx plant-store serve` makes one/,
      [openReader],
    );
    assert.deepEqual(await catalogue(database), []);
  });
});

test('tables of other names are no hindrance, and stay as they are', async () => {
  const database = await under.newDatabase();
  await under.sql(database, 'CREATE TABLE account (id integer, balance integer)');
  await using engine = await openStore(database);
  assert.equal(engine.isNew, true);
  const tables = (await catalogue(database)).filter(({ relname }) => relname === 'account');
  assert.equal(tables.length, 2);
});
