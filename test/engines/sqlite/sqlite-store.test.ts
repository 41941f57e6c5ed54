import assert from 'node:assert/strict';
import {
  chmodSync,
  copyFileSync,
  linkSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { ALONE_PLANTS_MIN } from '../../../src/core/commit/group-commit.ts';
import { StoreRejected, StoreUnavailable } from '../../../src/core/commit/store-errors.ts';
import type { SqliteStatistics, StorageEngine } from '../../../src/engines/storage-engine.ts';
import { mountNamespace } from '../../harness/mount-namespace.ts';
import { openCommandStore, openCopyTarget, openReader } from '../../harness/open-store.ts';
import { plantWrite } from '../../harness/plant-write.ts';
import { assertFailed, runProgram } from '../../harness/program.ts';
import { holdStore } from '../../harness/store-hold.ts';
import { commit, openStore, openTokens, pathOf, sqliteUnderTest } from '../../harness/store-under-test.ts';
import { storedRevisions } from '../../harness/stored-revisions.ts';
import { until } from '../../harness/until.ts';

const sqlite = sqliteUnderTest();

/** The URL of a new store, and the path of its file, which does not exist yet. */
async function newStore(): Promise<{ database: string; path: string }> {
  const database = await sqlite.newDatabase();
  return { database, path: pathOf(database) };
}

test('an SQL client cannot change or delete a revision', async () => {
  const { database } = await newStore();
  await using engine = await openStore(database);
  await commit(engine, { id: 1n, name: 'old' }, { id: 1n, name: 'new' });
  for (const statement of [`UPDATE plant_revision SET name = 'other'`, 'DELETE FROM plant_revision']) {
    await assert.rejects(sqlite.sql(database, statement), /append-only/, statement);
  }
  assert.equal((await storedRevisions(database)).length, 2);
});

// A process that closes a file loses all its locks on the file. The next connection that closes
// would then delete the log: https://sqlite.org/howtocorrupt.html, section 2.2.
test('a store stays locked when the writer opens it again after a failed commit', async () => {
  const { database, path } = await newStore();
  await using engine = await openStore(database);
  const { ino, size } = statSync(path);
  const isLocked = (): boolean =>
    new RegExp(` READ ${process.pid} [0-9a-f:]+:${ino} `).test(readFileSync('/proc/locks', 'latin1'));
  // By then the checkpoint thread has a separate connection, which stays open.
  let id = 0n;
  await until('the log is copied', async () => {
    await commit(engine, ...Array.from({ length: 50 }, () => ({ id: id++, name: 'x'.repeat(10_000) })));
    return statSync(path).size > size;
  });
  assert.ok(isLocked());
  const held = holdStore(database);
  await assert.rejects(commit(engine, { id, name: 'A' }), StoreUnavailable);
  held[Symbol.dispose]();
  assert.ok((await engine.firstPlantAt())! > 0);
  assert.ok(isLocked());
});

test('after a crash the log is rewritten before a plant in it is reported as unchanged, or a token is revoked', async () => {
  const [{ database, path }, { database: crashed, path: copy }] = [await newStore(), await newStore()];
  const plant = { id: 1n, name: 'possibly not flushed' };
  {
    await using engine = await openStore(database);
    await commit(engine, plant);
    for (const suffix of ['', '-wal']) copyFileSync(path + suffix, copy + suffix);
  }
  const log = readFileSync(`${copy}-wal`);
  const commits: ((engine: StorageEngine) => Promise<unknown>)[] = [
    async engine =>
      assert.deepEqual(await commit(engine, plant), [
        { kind: 'confirmed', outcome: 'unchanged', revision: 1 },
      ]),
    // It changes no row, so it writes no more than that.
    engine => engine.tokenTable.revokeToken('unknown', 1),
  ];
  for (const run of commits) {
    writeFileSync(`${copy}-wal`, log);
    utimesSync(`${copy}-wal`, 1, 1);
    await using engine = await openStore(crashed);
    assert.equal(statSync(`${copy}-wal`).mtimeMs, 1_000, 'opening the store does not write');
    await run(engine);
    assert.ok(statSync(`${copy}-wal`).mtimeMs > 1_000);
    assert.deepEqual(readFileSync(`${copy}-wal`), log);
  }
});

test('a repeated change of a token writes no test data, and the connection stays open', async () => {
  await using engine = await openTokens((await newStore()).database);
  const token = { hash: 'a'.repeat(64), label: 'repeated', createdAt: 1, expiresAt: null };
  const stored = await engine.tokenTable.createToken(token);
  const before = await engine.tokenTable.tokenFingerprints();
  assert.deepEqual(await engine.tokenTable.createToken(token), stored);
  assert.deepEqual(await engine.tokenTable.tokenFingerprints(), before, 'a new connection has others');
  const { walBytes } = (await engine.statistics()) as SqliteStatistics;
  assert.ok(walBytes < 1024 * 1024, `${walBytes} bytes`);
});

/** Runs a program while the folder is mounted read-only for it. */
const READ_ONLY = `mount --bind "$FOLDER" "$FOLDER" && mount -o remount,bind,ro,nosuid,nodev "$FOLDER" && exec "$0" "$@"`;

const CREATED = [{ kind: 'confirmed', outcome: 'created', revision: 1 }];
const WRITE = plantWrite({ id: 1n, name: 'Fern' }, 1);

test('a commit of a client that sends one plant at a time stops the event loop only briefly', async () => {
  const { database } = await newStore();
  await using engine = await openStore(database);
  const queue = engine.openQueue(writes => engine.commit(writes));
  for (let id = 0; id < 2 * ALONE_PLANTS_MIN; id++)
    assert.deepEqual([await queue.write(plantWrite({ id: BigInt(1_000 + id), name: 'Fern' }, 1))], CREATED);
  const held = holdStore(database);
  // This plant is committed at once, and the event loop waits for its commit.
  const result = queue.write(WRITE);
  setImmediate(() => held[Symbol.dispose]());
  // If the event loop waited for it, the lock would be held until the commit fails.
  assert.deepEqual([await result], CREATED);
});

async function makeStore(path: string): Promise<void> {
  const store = await openStore(`sqlite:${path}`);
  await store[Symbol.asyncDispose]();
}

/** Every function that opens a store rejects, with a message for the user. */
async function assertRejected(path: string, reason: string): Promise<void> {
  const rejected = { name: 'StoreRejected', message: RegExp(`^.*${path}.*${reason}.*$`) };
  // Twice: a failed start must release the lock.
  for (const open of [openStore, openStore, openCommandStore, openCopyTarget])
    await assert.rejects(open(`sqlite:${path}`), rejected);
  await assert.rejects(openReader(`sqlite:${path}`), StoreRejected);
}

const account = 'CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER);';
const cases: [what: string, make: (path: string) => unknown, reason: string][] = [
  [
    'a database of another program with its own schema number',
    async path => {
      await sqlite.sql(path, account);
      await sqlite.sql(path, 'PRAGMA user_version = 1');
    },
    'not a plant store',
  ],
  [
    'a store cut short',
    async path => {
      await makeStore(path);
      writeFileSync(path, readFileSync(path).subarray(0, 1_000));
    },
    'cannot be opened',
  ],
  [
    'a store with two hard links, which would have two logs',
    async path => {
      await makeStore(path);
      linkSync(path, `${path}.link`);
    },
    'one of 2 names .hard links. of the same file; keep only one',
  ],
];
for (const [what, make, reason] of cases) {
  test(`rejected without a change: ${what}`, async () => {
    const { path } = await newStore();
    await make(path);
    const before = readFileSync(path);
    await assertRejected(path, reason);
    assert.deepEqual(readFileSync(path), before);
  });
}

test('a store restored from an SQL dump is rejected until the PRAGMA line of the message is run', async () => {
  const [{ database, path }, { database: restored, path: copy }] = [await newStore(), await newStore()];
  const plant = { id: 9007199254740993n, name: 'Fern' };
  {
    await using engine = await openStore(database);
    await commit(engine, plant);
  }
  {
    using client = new DatabaseSync(copy);
    client.exec(`ATTACH '${path}' AS dumped`);
    const items = `SELECT type, name, sql FROM dumped.sqlite_schema WHERE sql <> '' ORDER BY type <> 'table'`;
    for (const { type, name, sql } of client.prepare(items).all()) {
      client.exec(String(sql));
      if (type === 'table') client.exec(`INSERT INTO main.${name} SELECT * FROM dumped.${name}`);
    }
  }
  const reason = `not a plant store; if it was restored .* run: sqlite3 '(.*)' '(PRAGMA .*)'`;
  await assertRejected(copy, reason);
  const { message: text } = (await openStore(restored).catch((error: unknown) => error)) as Error;
  const [, file, pragmas = ''] = RegExp(`${reason}$`).exec(text)!;
  for (const pragma of pragmas.split(';')) await sqlite.sql(file!, pragma);
  assert.partialDeepStrictEqual(await storedRevisions(restored), [{ revision: 1, plant }]);
  await using engine = await openStore(restored);
  assert.deepEqual(await commit(engine, plant), [{ kind: 'confirmed', outcome: 'unchanged', revision: 1 }]);
});

test('a file in which only Litestream has created tables becomes a store', async () => {
  const database = await sqlite.newDatabase();
  await sqlite.sql(database, 'CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER)');
  await using engine = await openStore(database);
  assert.deepEqual(await engine.commit([WRITE]), CREATED);
});

test('a second service on the same file, also through a link, is rejected until the first ends', async () => {
  const { database, path } = await newStore();
  const link = `${database}-link.db`;
  symlinkSync(path, pathOf(link));
  {
    await using first = await openStore(database);
    const message = /another plant-store service is running on .*; stop it first/;
    const rejected = { name: 'StoreRejected', message };
    for (const name of [database, link]) await assert.rejects(openStore(name), rejected);
    assert.deepEqual(await first.commit([WRITE]), CREATED);
  }
  await using second = await openStore(link);
  assert.deepEqual(await second.commit([WRITE]), [{ kind: 'confirmed', outcome: 'unchanged', revision: 1 }]);
});

test('commands write through a link, also through one to a file that does not exist yet', async () => {
  const { database, path } = await newStore();
  const link = `${database}-link.db`;
  symlinkSync(path, pathOf(link));
  const token = { hash: 'hash', label: 'label', createdAt: 1, expiresAt: null };
  {
    await using engine = await openTokens(link);
    assert.ok(await engine.tokenTable.createToken(token));
  }
  await using service = await openStore(database);
  await using beside = await openTokens(link);
  assert.ok(await beside.tokenTable.revokeToken('label', Date.now()));
  assert.deepEqual(await service.commit([WRITE]), CREATED);
});

test('a link into a missing folder is rejected by services and commands alike', async () => {
  const { database, path } = await newStore();
  const link = `${database}-link.db`;
  symlinkSync(join(dirname(path), 'missing', 'plants.db'), pathOf(link));
  const rejected = { name: 'StoreRejected', message: /cannot be opened .* check that the folder exists/ };
  for (const open of [openStore, openTokens]) await assert.rejects(open(link), rejected);
});

test('a file that is mounted by itself is rejected, also by commands that only read', async () => {
  const inNamespace = mountNamespace('a mounted file');
  if (inNamespace === undefined) return;
  const { path } = await newStore();
  await makeStore(path);
  const mounted = `${path} mounted.db`;
  writeFileSync(mounted, '');
  const prefix = [...inNamespace, 'sh', '-c', 'mount --bind "$STORE" "$MOUNTED" && exec "$0" "$@"'];
  const options = { prefix, env: { STORE: path, MOUNTED: mounted } };
  for (const args of [
    ['serve', '--listen', '127.0.0.1:0', '--ops', '127.0.0.1:0'],
    ['token', 'create', 'x'],
    ['export'],
  ]) {
    const finished = await runProgram([...args, '--database', `sqlite:${mounted}`], options);
    assertFailed(finished, /^plant-store: .* is mounted as a single file, .*; mount its folder instead\n$/);
  }
});

test('on a read-only mount a store in use, a stopped one and a backup can be read, and no log is left out', async () => {
  const inNamespace = mountNamespace('a read-only mount');
  if (inNamespace === undefined) return;
  const { database, path } = await newStore();
  const file = (name: string): string => join(dirname(path), name);
  const run = (command: string, name: string) =>
    runProgram([command, '--database', `sqlite:${file(name)}`], {
      prefix: [...inNamespace, 'sh', '-c', READ_ONLY],
      env: { FOLDER: dirname(path) },
    });
  {
    await using engine = await openStore(database);
    await commit(engine, { id: 1n, name: 'in the write-ahead log' });
    // A store that was copied together with its log, as by a snapshot that leaves out `-shm`.
    for (const suffix of ['', '-wal']) copyFileSync(path + suffix, file(`copied.db${suffix}`));
    assert.match((await run('export', 'plants.db')).stdout, /^1,in the write-/m);
  }
  assert.equal((await runProgram(['backup', file('backup.db'), '--database', database])).exitCode, 0);
  // https://sqlite.org/fileformat.html#file_format_version_numbers: 1 is no WAL mode.
  assert.deepEqual([...readFileSync(file('backup.db')).subarray(18, 20)], [1, 1]);
  for (const name of ['plants.db', 'backup.db']) {
    for (const command of ['export', 'list', 'stats', 'verify']) {
      const { exitCode, stdout, stderr } = await run(command, name);
      assert.equal(exitCode, 0, `${command} ${name}: ${stderr}`);
      assert.match(stdout, /in the write-|1 plant|plants +1/, command);
    }
  }
  assertFailed(
    await run('export', 'copied.db'),
    /^plant-store: .*copied\.db cannot be read here: .*copied\.db-wal belongs to it, .*; copy both files /,
  );
});

test('a lock file with other content is rejected with a message', async () => {
  const { database, path } = await newStore();
  const text = 'not a database, and long enough to be read as a page of one\n';
  writeFileSync(`${path}-serve-lock`, text.repeat(100));
  await assert.rejects(openStore(database), StoreRejected);
});

test('only the owner may read a new store and its lock, and the mode of an existing store does not change', async () => {
  const { path } = await newStore();
  const modeOf = (file: string): number => statSync(file).mode & 0o777;
  // An empty file becomes a new store.
  writeFileSync(path, '', { mode: 0o644 });
  await makeStore(path);
  assert.equal(modeOf(path), 0o600);
  // A user who may read the lock file could take the lock and block the service.
  assert.equal(modeOf(`${path}-serve-lock`), 0o600);
  chmodSync(path, 0o640);
  await makeStore(path);
  assert.equal(modeOf(path), 0o640);
});
