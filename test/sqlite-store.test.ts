import assert from 'node:assert/strict';
import { once } from 'node:events';
import { copyFileSync, readFileSync, statSync, utimesSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import type { Worker } from 'node:worker_threads';
import type { NewPlant } from '../src/contract/plant.ts';
import { type StorageEngine, StoreUnavailable, type WriteResult } from '../src/store/plant-store.ts';
import { openForWriting } from '../src/store/sqlite/database.ts';
import { storedRevisions } from './harness/stored-revisions.ts';
import { openStore, sqliteUnderTest } from './store-under-test.ts';

const sqlite = sqliteUnderTest();

/** The address of a new store, and the path of its file. */
async function newStore(): Promise<{ database: string; path: string }> {
  const database = await sqlite.newDatabase();
  return { database, path: database.replace('sqlite:', '') };
}

function commit(engine: StorageEngine, ...plants: NewPlant[]): Promise<WriteResult[]> {
  return engine.commit(plants.map(plant => ({ plant, recordedBy: 1 })));
}

test('a connection writes ahead and flushes each commit', async () => {
  const { path } = await newStore();
  using database = openForWriting(path);
  assert.equal(database.prepare('PRAGMA synchronous').get()?.synchronous, 2);
  assert.equal(database.prepare('PRAGMA journal_mode').get()?.journal_mode, 'wal');
});

test('no SQL client changes or deletes a revision', async () => {
  const { database } = await newStore();
  await using engine = await openStore(database);
  await commit(engine, { id: 1n, name: 'old' }, { id: 1n, name: 'new' });
  for (const statement of [`UPDATE plant_revision SET name = 'other'`, 'DELETE FROM plant_revision']) {
    await assert.rejects(sqlite.sql(database, statement), /append-only/, statement);
  }
  assert.equal((await storedRevisions(database)).length, 2);
});

test('a writer thread that dies takes only its batch with it; the next one starts another', async () => {
  const { database } = await newStore();
  const started = once(process, 'worker') as Promise<[Worker]>;
  {
    await using engine = await openStore(database);
    const [thread] = await started;
    await commit(engine, { id: 1n, name: 'before' });
    const plants = Array.from({ length: 5_000 }, (_, index) => ({ id: BigInt(index + 2), name: 'at stake' }));
    const atStake = commit(engine, ...plants);
    await Promise.all([assert.rejects(atStake, StoreUnavailable), thread.terminate()]);
    assert.deepEqual(await commit(engine, { id: 1n, name: 'before' }, { id: 0n, name: 'after' }), [
      { outcome: 'unchanged', revision: 1 },
      { outcome: 'created', revision: 1 },
    ]);
  }
  // All of the batch or nothing of it.
  assert.ok([2, 5_002].includes((await storedRevisions(database)).length));
});

test('of the files that a crash left, the log is written again before a plant in it is answered as unchanged', async () => {
  const [{ database, path }, { database: crashed, path: copy }] = [await newStore(), await newStore()];
  const plant = { id: 1n, name: 'perhaps never flushed' };
  {
    await using engine = await openStore(database);
    await commit(engine, plant);
    for (const suffix of ['', '-wal']) copyFileSync(path + suffix, copy + suffix);
  }
  const log = readFileSync(`${copy}-wal`);
  utimesSync(`${copy}-wal`, 1, 1);
  await using engine = await openStore(crashed);
  assert.equal(statSync(`${copy}-wal`).mtimeMs, 1_000, 'opening it writes nothing');
  assert.deepEqual(await commit(engine, plant), [{ outcome: 'unchanged', revision: 1 }]);
  assert.ok(statSync(`${copy}-wal`).mtimeMs > 1_000);
  assert.deepEqual(readFileSync(`${copy}-wal`), log);
});

test('of a batch larger than the page cache nothing is seen when it fails, and all of it when it does not', async () => {
  const { database, path } = await newStore();
  await using engine = await openStore(database);
  await commit(engine, { id: 0n, name: 'oak' });
  // With a connection of its own open, the log stays when the writer closes its own.
  using reader = new DatabaseSync(path, { readOnly: true });
  const seen = () => reader.prepare('SELECT count(*) AS revisions FROM plant_revision').get()!.revisions;
  assert.equal(seen(), 1);

  const name = 'x'.repeat(1024 * 1024);
  const batch = Array.from({ length: 20 }, (_, index) => ({
    plant: { id: BigInt(index + 1), name },
    recordedBy: 1,
  }));
  const rejectedBySqlite = { plant: { id: 100n, name }, recordedBy: 0.5 };
  await assert.rejects(engine.commit([...batch, rejectedBySqlite]), StoreUnavailable);
  const logBytes = statSync(`${path}-wal`).size;
  assert.ok(logBytes > 8 * 1024 * 1024, `it was in the log before its commit: ${logBytes} bytes`);
  assert.equal(seen(), 1);

  await engine.commit(batch);
  assert.equal(seen(), 21);
});
