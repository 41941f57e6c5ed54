import assert from 'node:assert/strict';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, utimesSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import type { Worker } from 'node:worker_threads';
import { ID_MAX } from '../src/contract/limits.ts';
import type { NewPlant } from '../src/contract/plant.ts';
import { type StorageEngine, StoreUnavailable, type WriteResult } from '../src/store/plant-store.ts';
import { openForWriting } from '../src/store/sqlite/database.ts';
import { SqliteEngine } from '../src/store/sqlite/sqlite-engine.ts';
import { storedRevisions } from './harness/stored-revisions.ts';

const folder = mkdtempSync(join(tmpdir(), 'plant-store-sqlite-'));
after(() => rmSync(folder, { recursive: true }));
let paths = 0;

/** A path where nothing is yet, in a folder of its own. */
function newPath(): string {
  const own = join(folder, String(++paths));
  mkdirSync(own);
  return join(own, 'plants.db');
}

async function withEngine(path: string, use: (engine: StorageEngine) => Promise<void>): Promise<void> {
  const engine = await SqliteEngine.open({ path, repeatedIdRule: 'revise' });
  try {
    await use(engine);
  } finally {
    await engine.close();
  }
}

function commit(engine: StorageEngine, ...plants: NewPlant[]): Promise<WriteResult[]> {
  return engine.commit(plants.map(plant => ({ plant, recordedBy: 1 })));
}

/** Runs SQL as an SQL client would, on a connection of its own. */
function sql(path: string, text: string): Record<string, unknown>[] {
  const database = new DatabaseSync(path);
  try {
    return database.prepare(text).all();
  } finally {
    database.close();
  }
}

test('a connection writes ahead and flushes each commit', () => {
  const path = newPath();
  const database = openForWriting(path);
  assert.deepEqual({ ...database.prepare('PRAGMA synchronous').get() }, { synchronous: 2 });
  assert.deepEqual({ ...database.prepare('PRAGMA journal_mode').get() }, { journal_mode: 'wal' });
  database.close();
});

test('no SQL client changes or deletes a revision', async () => {
  const path = newPath();
  await withEngine(path, async engine => {
    await commit(
      engine,
      { id: ID_MAX, name: 'old' },
      { id: ID_MAX, name: 'new', tag: 't' },
      { id: 1n, name: 'one' },
    );
  });
  for (const statement of [
    "UPDATE plant_revision SET name = 'other'",
    'UPDATE plant_revision SET recorded_at = 0 WHERE id = 1',
    'DELETE FROM plant_revision',
    'DELETE FROM plant_revision WHERE id = 1',
  ]) {
    assert.throws(() => sql(path, statement), /append-only/, statement);
  }
  assert.deepEqual(
    (await storedRevisions(`sqlite:${path}`)).map(({ plant }) => plant.name),
    ['one', 'old', 'new'],
  );
});

test('a writer thread that dies takes only its batch with it; the next one starts another', async () => {
  const path = newPath();
  const started = once(process, 'worker') as Promise<[Worker]>;
  await withEngine(path, async engine => {
    const [thread] = await started;
    await commit(engine, { id: 1n, name: 'before' });
    const plants = Array.from({ length: 5_000 }, (_, index) => ({ id: BigInt(index + 2), name: 'at stake' }));
    const atStake = commit(engine, ...plants);
    await Promise.all([assert.rejects(atStake, StoreUnavailable), thread.terminate()]);
    assert.deepEqual(await commit(engine, { id: 1n, name: 'before' }, { id: 0n, name: 'after' }), [
      { outcome: 'unchanged', revision: 1 },
      { outcome: 'created', revision: 1 },
    ]);
  });
  // All of the batch or nothing of it.
  assert.ok([2, 5_002].includes((await storedRevisions(`sqlite:${path}`)).length));
});

test('a log that was found is written again before a plant that is in it is answered as unchanged', async () => {
  const path = newPath();
  const copy = newPath();
  const plant = { id: 1n, name: 'perhaps never flushed' };
  await withEngine(path, async engine => {
    await commit(engine, plant);
    for (const suffix of ['', '-wal']) copyFileSync(path + suffix, copy + suffix);
  });
  const log = readFileSync(`${copy}-wal`);
  utimesSync(`${copy}-wal`, 1, 1);
  await withEngine(copy, async engine => {
    assert.equal(statSync(`${copy}-wal`).mtimeMs, 1_000, 'opening it writes nothing');
    assert.deepEqual(await commit(engine, plant), [{ outcome: 'unchanged', revision: 1 }]);
    assert.ok(statSync(`${copy}-wal`).mtimeMs > 1_000);
    assert.deepEqual(readFileSync(`${copy}-wal`), log);
  });
});

test('of a batch larger than the page cache nothing is seen when it fails, and all of it when it does not', async () => {
  const path = newPath();
  await withEngine(path, async engine => {
    await commit(engine, { id: 0n, name: 'oak' });
    // With a connection of its own open, the log stays when the writer gives up its own.
    using reader = new DatabaseSync(path, { readOnly: true });
    const seen = () => reader.prepare('SELECT count(*) AS revisions FROM plant_revision').get()!.revisions;
    assert.equal(seen(), 1);

    const name = 'x'.repeat(1024 * 1024);
    const batch = Array.from({ length: 20 }, (_, index) => ({
      plant: { id: BigInt(index + 1), name },
      recordedBy: 1,
    }));
    const refusedBySqlite = { plant: { id: 100n, name }, recordedBy: 0.5 };
    await assert.rejects(engine.commit([...batch, refusedBySqlite]), StoreUnavailable);
    const logBytes = statSync(`${path}-wal`).size;
    assert.ok(logBytes > 8 * 1024 * 1024, `it was in the log before its commit: ${logBytes} bytes`);
    assert.equal(seen(), 1);

    await engine.commit(batch);
    assert.equal(seen(), 21);
  });
});

test('a copy of the files as a crash leaves them opens with every commit in it', async () => {
  const path = newPath();
  const copy = newPath();
  await withEngine(path, async engine => {
    await commit(engine, { id: 1n, name: 'in the write-ahead log' });
    for (const suffix of ['', '-wal']) copyFileSync(path + suffix, copy + suffix);
  });
  await withEngine(copy, async engine => {
    assert.deepEqual(await commit(engine, { id: 1n, name: 'in the write-ahead log' }), [
      { outcome: 'unchanged', revision: 1 },
    ]);
  });
});
