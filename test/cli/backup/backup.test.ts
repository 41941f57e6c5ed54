import assert from 'node:assert/strict';
import {
  closeSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import {
  BACKUP_STEP_PAGES,
  checkCopy,
  copySnapshot,
} from '../../../src/engines/sqlite/access/sqlite-backup.ts';
import { openForWriting } from '../../../src/engines/sqlite/writing-database.ts';
import { commandProcess } from '../../harness/command-lines.ts';
import { fillStore, manyPlants, rowsOf } from '../../harness/copied-stores.ts';
import { mountNamespace } from '../../harness/mount-namespace.ts';
import { openCommandStore } from '../../harness/open-store.ts';
import { assertFailed, type Finished, runProgram, sendPlant, startCommand } from '../../harness/program.ts';
import { addToken, startTestService } from '../../harness/running-service.ts';
import { testFolder } from '../../harness/test-folder.ts';
import { until } from '../../harness/until.ts';

const PLANTS = 50_000;

const root = testFolder();
const commands = commandProcess(root);

function newFolder(): string {
  return mkdtempSync(join(root, 'test-'));
}

async function newStore(plants = manyPlants(3)): Promise<{ path: string; database: string }> {
  const path = join(newFolder(), 'plants.db');
  const database = `sqlite:${path}`;
  await fillStore(database, plants);
  return { path, database };
}

function backUp(file: string, database: string): Promise<Finished> {
  return commands.run({ args: ['backup', file, '--database', database] });
}

/** Asserts that `backup` prints one line with the reason why there is no backup. */
async function assertRejected(file: string, database: string, says: string, code = 1): Promise<void> {
  const { exitCode, stdout, stderr } = await backUp(file, database);
  assert.deepEqual([exitCode, stdout], [code, ''], stderr);
  assert.match(stderr, /^plant-store: [^\n]+\n$/);
  assert.ok(stderr.includes(says), stderr);
  assert.ok(!stderr.includes('secret'));
}

test('a backup contains exactly the rows of the store, in one file that only its owner can read, and is served', async () => {
  const database = `sqlite:${join(newFolder(), 'plants.db')}`;
  await fillStore(database);
  const folder = newFolder();
  const file = join(folder, 'backup.db');
  const { exitCode, stdout, stderr } = await backUp(file, database);
  assert.deepEqual([exitCode, stderr], [0, '']);
  const { size, mode } = statSync(file);
  const bytes = new Intl.NumberFormat('en-GB').format(size);
  assert.match(stdout, /: 19 plants, 33 revisions and 3 tokens, /);
  assert.match(stdout, new RegExp(`^${file}: .*, ${bytes} bytes, in [0-9.]+ s\n${file}\\.seal: .*\n$`));
  assert.equal(mode & 0o777, 0o600);
  assert.deepEqual(readdirSync(folder), ['backup.db', 'backup.db.seal']);
  assert.deepEqual(await rowsOf(`sqlite:${file}`), await rowsOf(database));
  const store = await openCommandStore(database);
  const [{ command, result } = {}, ...others] = await store.operatorTables
    .lastRuns()
    .finally(() => store.close());
  assert.deepEqual([command, others], ['backup', []]);
  assert.equal(result, `${file}: 19 plants, 33 revisions and 3 tokens`);
  await using service = await startTestService({ database: `sqlite:${file}` });
  assert.equal(await sendPlant(service.url, await addToken(service.database, 'since'), 2n ** 62n), 200);
});

test('a commit during the copy is not in the copy and does not restart it', async () => {
  const { path } = await newStore(manyPlants(PLANTS).map(plant => ({ ...plant, tag: 'x'.repeat(200) })));
  const copy = join(newFolder(), 'copy.db');
  closeSync(openSync(copy, 'wx'));
  using writer = openForWriting(path).database;
  const insert = writer.prepare(`INSERT INTO plant_revision VALUES (?, 1, 'came later', NULL, 0, 1, 0)`);
  let steps = 0;
  let pages = 0;
  const counts = await copySnapshot(path, copy, ({ totalPages }) => {
    pages = totalPages;
    assert.ok(++steps < 100, 'the copy restarts again and again');
    insert.run(-steps);
  });
  assert.ok(steps > 1, 'a commit came between two steps');
  assert.equal(steps, Math.ceil(pages / BACKUP_STEP_PAGES) - 1);
  assert.deepEqual(counts, { plants: PLANTS, revisions: PLANTS, tokens: 3 });
  assert.deepEqual(await checkCopy(copy), counts);
});

test('a backup that cannot start or is damaged prints one line, leaves no file and overwrites none', async () => {
  const { path, database } = await newStore();
  const folder = newFolder();
  const backup = join(folder, 'backup.db');
  const exists = 'already exists and was not changed; name another file';
  for (const left of ['-wal', '-journal', '-shm'].map(suffix => `${backup}${suffix}`)) {
    writeFileSync(left, 'of yesterday');
    await assertRejected(backup, database, `plant-store: ${left} ${exists}, or move this file away`);
    assert.equal(readFileSync(left, 'utf8'), 'of yesterday');
    rmSync(left);
  }
  const link = join(folder, 'link.db');
  symlinkSync('nowhere', link);
  for (const file of [link, folder, path])
    await assertRejected(file, database, `plant-store: ${file} ${exists}\n`);

  const other = join(newFolder(), 'other.db');
  writeFileSync(other, 'no database, whatever its name'.repeat(100));
  const none = join(folder, 'none.db');
  const inNoFolder = join(folder, 'no', 'a.db');
  await assertRejected(backup, `sqlite:${none}`, `there is no plant store at ${none}; `);
  await assertRejected(backup, `sqlite:${other}`, `${other} cannot be opened`);
  await assertRejected(inNoFolder, database, 'a.db cannot be created (ENOENT); create its folder first');
  await assertRejected(backup, 'postgres://u:secret@db.example/plants', 'pg_dump', 2);
  await assertRejected(`${path}-journal`, database, 'choose another name', 2);

  const damaged = await newStore();
  const page = openSync(damaged.path, 'r+');
  // The root page of an index, whose content is copied unread.
  writeSync(page, Buffer.alloc(64, 0xff), 0, 64, 8 * 4096);
  closeSync(page);
  await assertRejected(backup, damaged.database, 'the copy is damaged (');
  assert.deepEqual(readdirSync(folder), ['link.db']);
});

test('SIGINT leaves no file, a killed backup does not block its name, and of two the first to end gets it', async () => {
  const { database } = await newStore(manyPlants(PLANTS));
  const folder = newFolder();
  const file = join(folder, 'backup.db');
  const begin = async (signal: NodeJS.Signals) => {
    const before = readdirSync(folder).length;
    const { child, finished } = startCommand(['backup', file, '--database', database]);
    // At this moment the copying process has not yet started.
    await until('the backup has begun', () => readdirSync(folder).length > before);
    child.kill(signal);
    return { child, finished };
  };
  const interrupted = await (await begin('SIGINT')).finished;
  const stderr = 'plant-store: stopped; no backup was created\n';
  assert.deepEqual(interrupted, { exitCode: 130, stdout: '', stderr });
  assert.deepEqual(readdirSync(folder), []);

  await (await begin('SIGKILL')).finished;
  const stopped = await begin('SIGSTOP');
  assert.equal((await backUp(file, database)).exitCode, 0);
  const made = readFileSync(file);
  stopped.child.kill('SIGCONT');
  const late = await stopped.finished;
  assert.match(`${late.exitCode} ${late.stderr}`, /^1 .*backup\.db already exists and was not changed; name/);
  assert.deepEqual(readFileSync(file), made);
  assert.equal(readdirSync(folder).length, 3, 'only the backup, its seal and the file of the killed one');
});

test('a full or failing disk is reported and leaves no file', async () => {
  const { database } = await newStore(manyPlants(PLANTS));
  const disk = newFolder();
  const args = ['backup', join(disk, 'backup.db'), '--database', database];
  // No file can grow beyond 1 MiB, on any POSIX system; `ulimit -f` counts half KiB.
  const small = await runProgram(args, { prefix: ['sh', '-c', 'ulimit -f 2048; exec "$0" "$@"'] });
  assertFailed(small, /^plant-store: (?:copying failed|the disk is full)[^\n]+\n$/);
  assert.deepEqual(readdirSync(disk), []);

  // The file gets its name only after its flush.
  const failingFlush = `import fs from 'node:fs'; import { syncBuiltinESMExports } from 'node:module';
    fs.fsyncSync = () => { throw Object.assign(new Error(), { code: 'EIO', syscall: 'fsync' }); };
    syncBuiltinESMExports();`;
  const nodeArgs = ['--import', `data:text/javascript,${encodeURIComponent(failingFlush)}`];
  const failing = await runProgram(args, { nodeArgs });
  assertFailed(failing, /^plant-store: .* cannot be created \(EIO\); do not use/);
  assert.deepEqual(readdirSync(disk), []);

  const inOwnNamespace = mountNamespace('ENOSPC');
  if (inOwnNamespace === undefined) return;
  const onSmallDisk = 'mount -t tmpfs -o size=1m tmpfs "$0" && "$@"; code=$?; ls "$0"; exit $code';
  const full = await runProgram(args, { prefix: [...inOwnNamespace, 'sh', '-c', onSmallDisk, disk] });
  assert.deepEqual([full.exitCode, full.stdout], [1, '']);
  assert.equal(full.stderr, 'plant-store: the disk is full; free space, or name a file on another disk\n');
});
