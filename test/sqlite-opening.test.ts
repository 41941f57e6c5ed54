import assert from 'node:assert/strict';
import { chmodSync, linkSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { suite, test } from 'node:test';
import { openReader, openServedStore, openTokenStore } from '../src/store/open-store.ts';
import { StoreRefused } from '../src/store/plant-store.ts';
import { openStore, sqliteUnderTest } from './store-under-test.ts';

const sqlite = sqliteUnderTest();
const CREATED = [{ outcome: 'created', revision: 1 }];
const UNCHANGED = [{ outcome: 'unchanged', revision: 1 }];
const WRITE = { plant: { id: 1n, name: 'Fern' }, recordedBy: 1 };

/** A path where nothing is yet, in a folder of its own. */
async function newPath(): Promise<string> {
  return (await sqlite.newDatabase()).replace('sqlite:', '');
}

async function makeStore(path: string): Promise<void> {
  const store = await openStore(`sqlite:${path}`);
  await store[Symbol.asyncDispose]();
}

function openServed(path: string): ReturnType<typeof openServedStore> {
  return openServedStore({ database: `sqlite:${path}`, repeatedIdRule: 'revise', connections: 1 });
}

/** Every way into a store rejects, with a message that says what is wrong and what to do. */
async function assertRejected(path: string, message: RegExp): Promise<void> {
  const rejected = (error: unknown): true => {
    assert.ok(error instanceof StoreRefused, String(error));
    assert.match(error.message, message);
    assert.ok(error.message.includes(path), `${error.message} names the file`);
    assert.ok(!error.message.includes('\n'), 'one line');
    return true;
  };
  // Twice: the first start leaves no lock behind.
  for (let start = 0; start < 2; start++) await assert.rejects(openServed(path), rejected);
  await assert.rejects(openTokenStore(`sqlite:${path}`), rejected);
  await assert.rejects(openReader(`sqlite:${path}`), StoreRefused);
}

suite('rejected, and left as it is:', () => {
  const account = 'CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER);';
  const cases: [what: string, make: (path: string) => unknown, message: RegExp][] = [
    [
      'a store of a newer program',
      async path => {
        await makeStore(path);
        await sqlite.sql(path, 'PRAGMA user_version = 99');
      },
      /newer plant-store \(schema step 99, this program knows \d+\); use that one/,
    ],
    [
      'a database of another program',
      path => sqlite.sql(path, account),
      /not a plant store; name another file with --database/,
    ],
    [
      'a database of another program with a schema number of its own',
      async path => {
        await sqlite.sql(path, account);
        await sqlite.sql(path, 'PRAGMA user_version = 1');
      },
      /not a plant store/,
    ],
    [
      'a file that is no database',
      path => writeFileSync(path, 'id,name,tag\n1,Ficus,\n'.repeat(1_000)),
      /cannot be opened .* it is no SQLite database/,
    ],
    [
      'a store cut short',
      async path => {
        await makeStore(path);
        writeFileSync(path, readFileSync(path).subarray(0, 1_000));
      },
      /cannot be opened/,
    ],
    [
      'a store with two names, under each of which it would have another log',
      async path => {
        await makeStore(path);
        linkSync(path, `${path}.link`);
      },
      /one of 2 names \(hard links\) of the same file; keep one/,
    ],
  ];
  for (const [what, make, message] of cases) {
    test(what, async () => {
      const path = await newPath();
      await make(path);
      const before = readFileSync(path);
      await assertRejected(path, message);
      assert.deepEqual(readFileSync(path), before);
    });
  }
});

test('a path that no folder can be made for is rejected', async () => {
  const file = await newPath();
  writeFileSync(file, '');
  // This binds root as well, which permissions do not.
  await assertRejected(join(file, 'plants.db'), /cannot be opened .*; is the folder there and writable\?/);
  await assertRejected(dirname(file), /cannot be opened/);
});

test('a file in which Litestream was quicker to make its own tables becomes a store', async () => {
  const path = await newPath();
  await sqlite.sql(path, 'CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER)');
  const { engine, close } = await openServed(path);
  assert.deepEqual(await engine.commit([WRITE]), CREATED);
  await close();
});

test('an address that names no store of this program is rejected', async () => {
  for (const database of ['', 'sqlite:', 'sqlite::memory:', 'mysql://localhost/plants', 'plants.db']) {
    const settings = { database, repeatedIdRule: 'revise', connections: 1 } as const;
    await assert.rejects(openServedStore(settings), /names no store; write sqlite:PATH/, database);
  }
});

test('a second service on the same file, by whichever name, is rejected until the first lets go', async () => {
  const path = await newPath();
  const link = `${path}-link.db`;
  symlinkSync(path, link);
  const first = await openServed(path);
  for (const name of [path, link]) {
    await assert.rejects(openServed(name), {
      name: 'StoreRefused',
      message: /another plant-store service is running on .*; stop it first/,
    });
  }
  assert.deepEqual(await first.engine.commit([WRITE]), CREATED);
  await first.close();
  const second = await openServed(link);
  assert.deepEqual(await second.engine.commit([WRITE]), UNCHANGED);
  await second.close();
});

test('a lock file that is no lock is rejected with a message', async () => {
  const path = await newPath();
  const text = 'not a database, and long enough to be read as a page of one\n';
  writeFileSync(`${path}-serve-lock`, text.repeat(100));
  await assert.rejects(openServed(path), StoreRefused);
});

test('a new store and its lock are for their owner alone, and an existing store keeps its mode', async () => {
  const path = await newPath();
  const modeOf = (file: string): number => statSync(file).mode & 0o777;
  await makeStore(path);
  assert.equal(modeOf(path), 0o600);
  // Whoever may read the lock could take it, and keep the service from starting.
  assert.equal(modeOf(`${path}-serve-lock`), 0o600);
  chmodSync(path, 0o640);
  await makeStore(path);
  assert.equal(modeOf(path), 0o640);
});
