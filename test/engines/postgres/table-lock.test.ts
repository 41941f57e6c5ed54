import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { StoreUnavailable } from '../../../src/core/commit/store-errors.ts';
import { prepareServer } from '../../../src/engines/postgres/citus/prepare-server.ts';
import { TABLE_LOCKS_MAX, TableLock } from '../../../src/engines/postgres/citus/table-lock.ts';
import { ConnectionPool } from '../../../src/engines/postgres/connections/connection-pool.ts';
import { HostSearch } from '../../../src/engines/postgres/connections/host-search.ts';
import { postgresAddressOf } from '../../../src/engines/postgres/postgres-url.ts';
import { databaseName, openStore, postgresUnderTest } from '../../harness/store-under-test.ts';
import { until } from '../../harness/until.ts';

const { server } = await postgresUnderTest();
const url = await server.createDatabase();
const database = databaseName(url);
await (await openStore(url)).close();
// Citus is not on npm. Its function takes the lock that this one takes.
await server.query(
  `CREATE FUNCTION lock_relation_if_exists(table_name text, lock_mode text) RETURNS boolean LANGUAGE plpgsql
    AS $$ BEGIN EXECUTE format('LOCK TABLE %I IN %s MODE', table_name, lock_mode); RETURN true; END $$`,
  database,
);

async function openPool(): Promise<ConnectionPool> {
  return new ConnectionPool(new HostSearch(postgresAddressOf(url), prepareServer), TABLE_LOCKS_MAX);
}

const soon = (): number => performance.now() + 2_000;

/** @param mode of a lock that a command takes */
async function isFree(mode: string): Promise<boolean> {
  return await server.query(`BEGIN; LOCK TABLE plant_revision IN ${mode} MODE NOWAIT`, database).then(
    () => true,
    ({ code }) => {
      assert.equal(code, '55P03');
      return false;
    },
  );
}

test('a retired lock holds until its batches have ended, and then its connection is free', async () => {
  const pool = await openPool();
  for (let round = 0; round <= TABLE_LOCKS_MAX; round++) {
    const lock = await TableLock.take(pool, soon());
    lock.enter();
    const next = await TableLock.take(pool, soon());
    assert.equal(next.tableId, lock.tableId);
    next.retire();
    lock.retire();
    assert.ok(lock.isHeld && !next.isHeld);
    assert.ok(!(await isFree('EXCLUSIVE')), 'a batch still runs');
    // Writers and VACUUM do not wait for it.
    for (const mode of ['ROW EXCLUSIVE', 'SHARE UPDATE EXCLUSIVE']) assert.ok(await isFree(mode), mode);
    lock.leave();
    assert.ok(!lock.isHeld);
    await until('the lock is free', () => isFree('EXCLUSIVE'));
  }
  await pool.close();
});

test('an idle lock does not hold up VACUUM', async () => {
  const pool = await openPool();
  const lock = await TableLock.take(pool, soon());
  const rows = await server.query(
    `SELECT backend_xmin, backend_xid FROM pg_stat_activity WHERE state = 'idle in transaction'`,
    database,
  );
  assert.deepEqual(rows, [{ backend_xmin: null, backend_xid: null }]);
  lock.retire();
  await pool.close();
});

test('a lock is lost with its connection, and its successor sees whether the table was replaced', async () => {
  const pool = await openPool();
  const lost = await TableLock.take(pool, soon());
  lost.enter();
  await server.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'idle in transaction'`,
    database,
  );
  await until('the loss is known', () => !lost.isHeld);
  lost.retire();
  await server.query(
    `CREATE TABLE other (LIKE plant_revision); DROP TABLE plant_revision CASCADE;
     ALTER TABLE other RENAME TO plant_revision`,
    database,
  );
  const next = await TableLock.take(pool, soon());
  assert.notEqual(next.tableId, lost.tableId);
  next.retire();
  await pool.close();
});

for (const [command, kind] of [
  // The locks of undistribute_table, of ALTER TABLE and of CREATE INDEX; of a reader.
  ['LOCK TABLE plant_revision IN EXCLUSIVE MODE', 'conversion'],
  ['LOCK TABLE plant_revision IN ACCESS EXCLUSIVE MODE', 'change'],
  ['LOCK TABLE plant_revision IN SHARE MODE', 'change'],
  ['SELECT count(*) FROM plant_revision', 'nothing'],
] as const)
  test(`${command}: what waits for the lock: ${kind}`, async () => {
    const pool = await openPool();
    const lock = await TableLock.take(pool, soon());
    const other = new pg.Client({ connectionString: url });
    await other.connect();
    const waiting = other.query(`BEGIN; ${command}`);
    if (kind === 'nothing') {
      await waiting;
      assert.deepEqual(await lock.waiting(), { kind });
    } else {
      await until('the command waits', async () => (await lock.waiting()).kind === kind);
      await assert.rejects(TableLock.take(pool, performance.now() + 300, 50), StoreUnavailable);
    }
    lock.retire();
    await waiting;
    await other.end();
    await pool.close();
  });
