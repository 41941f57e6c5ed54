import assert from 'node:assert/strict';
import { chmodSync, existsSync, linkSync, mkdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { test } from 'node:test';
import { StoreRejected } from '../../../src/core/commit/store-errors.ts';
import { freePort } from '../../harness/free-port.ts';
import { mountNamespace } from '../../harness/mount-namespace.ts';
import { assertFailed, type Finished, FREE_PORTS, runProgram, startServe } from '../../harness/program.ts';
import { commit, openStore, pathOf, sqliteUnderTest } from '../../harness/store-under-test.ts';
import { testFolder } from '../../harness/test-folder.ts';

const sqlite = sqliteUnderTest();
const EMPTY = await sqlite.newDatabase();
await (await openStore(EMPTY))[Symbol.asyncDispose]();

const RUNNING = 'another plant-store service is running on ';

/** Starts a service that must fail. */
function serveElsewhere(database: string): Promise<Finished> {
  return runProgram(['serve', '--database', database, ...FREE_PORTS]);
}

test('only the owner of the store may read its lock file', async () => {
  const database = await sqlite.newDatabase();
  const lockFile = `${pathOf(database)}-serve-lock`;
  await (await openStore(database))[Symbol.asyncDispose]();
  // As after a copy of the folder. Who may read the file could take a shared lock.
  chmodSync(lockFile, 0o644);
  await using _store = await openStore(database);
  assert.equal(statSync(lockFile).mode & 0o777, 0o600);
});

/** Gives the store a name, and says what a second service on it is told. The first still runs. */
const NAMES: [what: string, give: (path: string, name: string) => void, says: string][] = [
  ['a new name', renameSync, RUNNING],
  [
    'a new name in another folder',
    (path, name) => {
      linkSync(path, name);
      rmSync(path);
    },
    RUNNING,
  ],
  ['a hard link', linkSync, 'is one of 2 names .hard links. of the same file; keep only one of them'],
];
for (const [what, give, says] of NAMES) {
  test(`a second service is rejected that finds the store by ${what}`, async () => {
    const database = await sqlite.newDatabase();
    const name = `${testFolder()}/other.db`;
    await using store = await openStore(database);
    await commit(store, { id: 1n, name: 'in the write-ahead log' });
    give(pathOf(database), name);
    await assert.rejects(openStore(`sqlite:${name}`), StoreRejected);
    // The try above has closed its files. It did not release the locks of this process.
    const rejected = await serveElsewhere(`sqlite:${name}`);
    assertFailed(rejected, RegExp(says));
    if (process.platform === 'linux' && says === RUNNING)
      assert.match(rejected.stderr, RegExp(` \\(process ${process.pid}\\); stop it first`));
  });
}

test('the lock holds in another mount and other namespaces, as of a container', async () => {
  const inNamespace = mountNamespace('the lock in a container');
  if (inNamespace === undefined) return;
  const database = await sqlite.newDatabase();
  const [folder, other] = [dirname(pathOf(database)), testFolder()];
  const mount = 'mount --bind "$FOLDER" "$OTHER" && exec unshare --net --ipc --pid --fork "$0" "$@"';
  const options = { prefix: [...inNamespace, 'sh', '-c', mount], env: { FOLDER: folder, OTHER: other } };
  // It takes the same lock as a service, and needs no network.
  const copy = () => runProgram(['copy', '--from', EMPTY, '--to', database.replace(folder, other)], options);
  {
    await using _store = await openStore(database);
    assertFailed(await copy(), RegExp(`^plant-store: --to: ${RUNNING}`));
  }
  assert.equal((await copy()).exitCode, 0);
});

test('a service whose lock file is deleted takes another one, or confirms no more plants', async () => {
  const database = await sqlite.newDatabase();
  const lockFile = `${pathOf(database)}-serve-lock`;
  await using first = await openStore(database);
  rmSync(lockFile);
  await commit(first, { id: 1n, name: 'Fern' });
  assertFailed(await serveElsewhere(database), RegExp(RUNNING));
  rmSync(lockFile);
  await using second = await openStore(database);
  await assert.rejects(commit(first, { id: 2n, name: 'Fern' }), RegExp(RUNNING));
  await commit(second, { id: 3n, name: 'Fern' });
});

test('a killed service leaves a lock file that blocks nobody, at once', async () => {
  const database = await sqlite.newDatabase();
  for (let start = 0; start < 3; start++) {
    await using serve = await startServe(database);
    await serve.stop('SIGKILL');
    assert.ok(existsSync(`${pathOf(database)}-serve-lock`));
  }
});

test('only a start after an unclean end is a restart for /readyz', async () => {
  const database = await sqlite.newDatabase();
  const ops = `127.0.0.1:${await freePort()}`;
  const ends: [signal: NodeJS.Signals, isRestart: boolean][] = [
    ['SIGTERM', false],
    ['SIGKILL', false],
    ['SIGTERM', true],
    ['SIGTERM', false],
  ];
  for (const [signal, isRestart] of ends) {
    await using serve = await startServe(database, ['--ops', ops]);
    const { restartedAt } = (await (await fetch(`http://${ops}/readyz`)).json()) as { restartedAt: unknown };
    assert.equal(typeof restartedAt, isRestart ? 'number' : 'object', signal);
    await serve.stop(signal);
  }
});

test('a lock file that cannot be used is named', async () => {
  const database = await sqlite.newDatabase();
  const lockFile = `${pathOf(database)}-serve-lock`;
  mkdirSync(lockFile);
  const rejected = {
    name: 'StoreRejected',
    message: RegExp(`^the lock file ${lockFile} cannot be used .*; make`),
  };
  await assert.rejects(openStore(database), rejected);
});

test('a lock file that does not exist and cannot be made is not said to exist', async () => {
  // The name of a file has 255 bytes at most, so that of the lock file would be too long.
  const path = `${testFolder()}/${'n'.repeat(245)}`;
  const rejected = {
    name: 'StoreRejected',
    message: RegExp(`^the store at ${path} cannot be opened .*; check that the folder exists`),
  };
  await assert.rejects(openStore(`sqlite:${path}`), rejected);
});
