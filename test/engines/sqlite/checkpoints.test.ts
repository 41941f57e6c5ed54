import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { SYSTEM_CLOCK } from '../../../src/core/clock.ts';
import { Checkpoints } from '../../../src/engines/sqlite/checkpoints/checkpoints.ts';
import { WAL_FILE_MAX_BYTES } from '../../../src/engines/sqlite/wal-limits.ts';
import { openForWriting } from '../../../src/engines/sqlite/writing-database.ts';
import { plantWrite } from '../../harness/plant-write.ts';
import { startProgram } from '../../harness/program.ts';
import { openNewStore, pathOf, sqliteUnderTest } from '../../harness/store-under-test.ts';
import { until } from '../../harness/until.ts';

/** Longer than the log gets with checkpoints, and shorter than `AUTOCHECKPOINT_PAGES`. */
const WAL_MAX_BYTES = 150 * 1024 * 1024;
const sqlite = sqliteUnderTest();

/** SQLite changes the salt whenever it restarts the log: https://sqlite.org/walformat.html */
function walSalt(path: string): string {
  return readFileSync(`${path}-wal`).subarray(16, 24).toString('hex');
}

test('the writer finishes the checkpoint of a long log only, and another follows a commit meanwhile', async () => {
  const path = pathOf(await sqlite.newDatabase());
  using database = openForWriting(path).database;
  database.exec('PRAGMA wal_autocheckpoint = 0');
  const insert = database.prepare(`INSERT INTO plant_revision VALUES (?, 1, ?, NULL, 0, 1, 0)`);
  /** The text of each plant fills a page of the log. */
  const write = (plants: number, first: number): void => {
    database.exec('BEGIN');
    for (let id = first; id < first + plants; id++) insert.run(id, 'x'.repeat(4_000));
    database.exec('COMMIT');
  };
  let finished = 0;
  const { promise: writerEnds, resolve: endWriter } = Promise.withResolvers<void>();
  const finish = () => {
    finished++;
    return writerEnds;
  };
  const checkpoints = new Checkpoints(path, finish, SYSTEM_CLOCK);
  try {
    write(100, 0);
    checkpoints.committed();
    await until('the short log is copied', () => statSync(path).size > 400_000);
    await wait(300);
    assert.equal(finished, 0);
    write(5_000, 100);
    checkpoints.committed();
    await until('the writer is called', () => finished === 1);
    const copiedBytes = statSync(path).size;
    write(100, 5_100);
    checkpoints.committed();
    endWriter();
    await until('the commit meanwhile is copied', () => statSync(path).size > copiedBytes + 400_000);
  } finally {
    endWriter();
    await checkpoints.close();
  }
});

test('the log is restarted while `list` waits for the reader of its output, and commits continue', async () => {
  await using engine = await openNewStore(sqlite);
  const path = pathOf(engine.database);
  // Far more than a pipe holds.
  let last = 0n;
  const commit = (length: number): Promise<unknown> =>
    engine.commit(
      Array.from({ length: 1_000 }, () => plantWrite({ id: ++last, name: 'x'.repeat(length) }, 1)),
    );
  for (let batch = 0; batch < 5; batch++) await commit(1_000);
  const list = startProgram(['list', '--database', engine.database]);
  try {
    await once(list.stdout!, 'readable');
    // A first restart is possible if all was copied before `list` began.
    const salts = new Set<string>();
    // The next commit is already queued when one ends, so the writer is never idle.
    let [current, next] = [commit(4_000), commit(4_000)];
    await until('the log is restarted', async () => {
      await current;
      [current, next] = [next, commit(4_000)];
      assert.ok(statSync(`${path}-wal`).size < WAL_MAX_BYTES, 'the log keeps growing');
      return salts.add(walSalt(path)).size > 2;
    });
    await Promise.all([current, next]);
    assert.equal(list.exitCode, null);
  } finally {
    list.kill();
  }
});

test('after a reader ends, a long log is restarted and truncated, and the closed store has no log', async () => {
  await using engine = await openNewStore(sqlite);
  const path = pathOf(engine.database);
  let last = 0n;
  /** Adds about 4 MiB to the log. */
  const commitMuch = (): Promise<unknown> =>
    engine.commit(Array.from({ length: 16 }, () => plantWrite({ id: ++last, name: 'x'.repeat(250_000) }, 1)));
  await commitMuch();
  using reader = new DatabaseSync(path, { readOnly: true });
  reader.exec('BEGIN');
  reader.prepare('SELECT count(*) FROM plant_revision').get();
  const first = walSalt(path);
  while (statSync(`${path}-wal`).size <= 1.1 * WAL_FILE_MAX_BYTES) await commitMuch();
  assert.equal(walSalt(path), first);
  const { plants } = reader.prepare('SELECT count(*) AS plants FROM plant_revision').get()!;
  assert.equal(plants, 16, 'the reader still sees its snapshot');

  reader.close();
  await until('the log is truncated', async () => {
    await engine.commit([plantWrite({ id: ++last, name: 'oak' }, 1)]);
    return statSync(`${path}-wal`).size <= WAL_FILE_MAX_BYTES;
  });
  assert.notEqual(walSalt(path), first);
  // This log is copied while the store is closed.
  await commitMuch();
  await engine.close();
  assert.ok(!existsSync(`${path}-wal`));
});
