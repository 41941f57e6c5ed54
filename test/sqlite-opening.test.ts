import assert from 'node:assert/strict';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import { openReader, openServedStore, openTokenStore } from '../src/store/open-store.ts';
import { StoreRefused } from '../src/store/plant-store.ts';
import { takeServeLock } from '../src/store/sqlite/serve-lock.ts';

const folder = mkdtempSync(join(tmpdir(), 'plant-store-opening-'));
after(() => rmSync(folder, { recursive: true }));
let paths = 0;

/** A path where nothing is yet, in a folder of its own. */
function newPath(): string {
  const own = join(folder, String(++paths));
  mkdirSync(own);
  return join(own, 'plants.db');
}

async function makeStore(path: string): Promise<void> {
  const store = await openServedStore({
    database: `sqlite:${path}`,
    repeatedIdRule: 'revise',
    connections: 1,
  });
  await store.close();
}

/** Runs one statement as an SQL client would, on a connection of its own. */
function sql(path: string, statement: string): void {
  const database = new DatabaseSync(path);
  database.exec(statement);
  database.close();
}

/** Both ways into a store refuse, with a message that says what is wrong and what to do. */
async function assertRefused(path: string, message: RegExp): Promise<void> {
  const refused = (error: unknown): true => {
    assert.ok(error instanceof StoreRefused, String(error));
    assert.match(error.message, message);
    assert.ok(error.message.includes(path), `${error.message} names the file`);
    assert.ok(!error.message.includes('\n'), 'one line');
    return true;
  };
  await assert.rejects(
    openServedStore({ database: `sqlite:${path}`, repeatedIdRule: 'revise', connections: 1 }),
    refused,
  );
  await assert.rejects(openTokenStore(`sqlite:${path}`), refused);
  await assert.rejects(openReader(`sqlite:${path}`), StoreRefused);
}

test('a store of a newer program is refused and left as it is', async () => {
  const path = newPath();
  await makeStore(path);
  sql(path, 'PRAGMA user_version = 99');
  const before = readFileSync(path);
  await assertRefused(path, /newer plant-store \(schema step 99, this program knows \d+\); use that one/);
  assert.deepEqual(readFileSync(path), before);
});

test('a database of another program is refused and left as it is', async () => {
  const path = newPath();
  sql(path, 'CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER)');
  const before = readFileSync(path);
  await assertRefused(path, /not a plant store; name another file with --database/);
  assert.deepEqual(readFileSync(path), before);
  assert.ok(!existsSync(`${path}-wal`));
});

test('a database of another program with a schema number of its own is refused too', async () => {
  const path = newPath();
  sql(path, 'CREATE TABLE account (id INTEGER PRIMARY KEY)');
  sql(path, 'PRAGMA user_version = 1');
  await assertRefused(path, /not a plant store/);
});

test('a file that is no database is refused and left as it is', async () => {
  const path = newPath();
  writeFileSync(path, 'id,name,tag\n1,Ficus,\n'.repeat(1_000));
  const before = readFileSync(path);
  await assertRefused(path, /cannot be opened/);
  assert.deepEqual(readFileSync(path), before);
});

test('a store cut short is refused, not taken for an empty one', async () => {
  const path = newPath();
  await makeStore(path);
  writeFileSync(path, readFileSync(path).subarray(0, 1_000));
  await assertRefused(path, /cannot be opened/);
});

test('a path that no folder can be made for is refused', async () => {
  const file = newPath();
  writeFileSync(file, '');
  // This binds root as well, which permissions do not.
  await assertRefused(join(file, 'plants.db'), /cannot be opened .*; is the folder there and writable\?/);
  await assertRefused(join(file, '..'), /cannot be opened/);
});

test('reading a store that is not there does not make one', async () => {
  const path = newPath();
  await assert.rejects(
    openReader(`sqlite:${path}`),
    /there is no plant store at .*name another with --database/,
  );
  assert.ok(!existsSync(path));
});

test('an address that names no store of this program is refused', async () => {
  for (const database of ['', 'sqlite:', 'sqlite::memory:', 'mysql://localhost/plants', 'plants.db']) {
    await assert.rejects(
      openServedStore({ database: database, repeatedIdRule: 'revise', connections: 1 }),
      /names no store; write sqlite:PATH/,
      database,
    );
  }
});

test('a second service on the same store is refused until the first lets go', async () => {
  const path = newPath();
  const write = { plant: { id: 1n, name: 'taken while the second one tries' }, recordedBy: 1 };
  const first = await openServedStore({
    database: `sqlite:${path}`,
    repeatedIdRule: 'revise',
    connections: 1,
  });
  await assert.rejects(
    openServedStore({ database: `sqlite:${path}`, repeatedIdRule: 'revise', connections: 1 }),
    {
      name: 'StoreRefused',
      message: /another plant-store service is running on .*; stop it first/,
    },
  );
  assert.deepEqual(await first.engine.commit([write]), [{ outcome: 'created', revision: 1 }]);
  await first.close();
  const second = await openServedStore({
    database: `sqlite:${path}`,
    repeatedIdRule: 'revise',
    connections: 1,
  });
  assert.deepEqual(await second.engine.commit([write]), [{ outcome: 'unchanged', revision: 1 }]);
  await second.close();
});

test('a second service is refused by another name of the same file too', async () => {
  const path = newPath();
  const link = join(folder, 'link.db');
  symlinkSync(path, link);
  const first = await openServedStore({
    database: `sqlite:${path}`,
    repeatedIdRule: 'revise',
    connections: 1,
  });
  const second = await openServedStore({
    database: `sqlite:${link}`,
    repeatedIdRule: 'revise',
    connections: 1,
  }).catch((error: unknown) => error);
  if (!(second instanceof Error)) await (second as typeof first).close();
  await first.close();
  assert.ok(second instanceof StoreRefused, 'two services had one store');
});

test('a lock file that is no lock is refused with a message', async () => {
  const path = newPath();
  writeFileSync(
    `${path}-serve-lock`,
    'not a database, and long enough to be read as a page of one\n'.repeat(100),
  );
  await assert.rejects(
    openServedStore({ database: `sqlite:${path}`, repeatedIdRule: 'revise', connections: 1 }),
    StoreRefused,
  );
});

test('a store behind a link takes plants', async () => {
  const path = newPath();
  await makeStore(path);
  const link = join(folder, 'plants-link.db');
  symlinkSync(path, link);
  const store = await openServedStore({
    database: `sqlite:${link}`,
    repeatedIdRule: 'revise',
    connections: 1,
  });
  try {
    const results = await store.engine.commit([{ plant: { id: 1n, name: 'Fern' }, recordedBy: 1 }]);
    assert.deepEqual(results, [{ outcome: 'created', revision: 1 }]);
  } finally {
    await store.close();
  }
});

test('the lock of a service is for its owner alone: a reader of it could keep the service from starting', () => {
  const path = newPath();
  takeServeLock(path)();
  assert.equal(statSync(`${path}-serve-lock`).mode & 0o777, 0o600);
});

test('a new store is for its owner alone, and one that is there keeps its rights', async () => {
  const path = newPath();
  await makeStore(path);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  chmodSync(path, 0o640);
  await makeStore(path);
  assert.equal(statSync(path).mode & 0o777, 0o640);
});
