import assert from 'node:assert/strict';
import { copyFileSync, existsSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { test } from 'node:test';
import { StoreUnavailable } from '../../../src/core/commit/store-errors.ts';
import type { LoggedRequest } from '../../harness/client-log.ts';
import { LoggingClient } from '../../harness/logging-client.ts';
import { runProgram, startServe } from '../../harness/program.ts';
import { type RunningService, startTestService } from '../../harness/running-service.ts';
import { commit, openStore, sqliteUnderTest } from '../../harness/store-under-test.ts';
import { faultsIn } from '../../harness/stored-revisions.ts';
import { until } from '../../harness/until.ts';

const sqlite = sqliteUnderTest();

/** Runs with a client that sends one plant at a time. In the end, every confirmed plant is stored. */
async function withService(
  run: (sabotaged: {
    service: RunningService;
    path: string;
    send(): Promise<number | undefined>;
  }) => Promise<void>,
): Promise<void> {
  await using service = await startTestService();
  const log: LoggedRequest[] = [];
  const client = new LoggingClient(service.url, service.token, log);
  const send = async (): Promise<number | undefined> => {
    const { response } = await client.send({ id: BigInt(log.length), name: 'oak' });
    return response?.status;
  };
  const path = service.database.replace('sqlite:', '');
  // Then the service checks the folder instead of its files.
  await until('the folder is quiet', () => Date.now() - statSync(dirname(path)).ctimeMs > 200);
  await run({ service, path, send });
  await client.close();
  if (existsSync(path)) assert.deepEqual(await faultsIn(service.database, log), []);
}

const SABOTAGES: [what: string, begin: (path: string) => void, end?: (path: string) => void][] = [
  ['is moved away', path => renameSync(path, `${path}.moved`), path => renameSync(`${path}.moved`, path)],
  [
    'is replaced by a copy',
    path => {
      renameSync(path, `${path}.moved`);
      copyFileSync(`${path}.moved`, path);
    },
    path => renameSync(`${path}.moved`, path),
  ],
  [
    'is deleted, and the service does not create it again',
    path => {
      for (const suffix of ['', '-wal', '-shm']) rmSync(`${path}${suffix}`);
    },
  ],
];
for (const [what, begin, end] of SABOTAGES) {
  test(`no plant is confirmed after the file ${what}`, () =>
    withService(async ({ path, send }) => {
      assert.equal(await send(), 200);
      begin(path);
      const exists = existsSync(path);
      for (let sent = 0; sent < 3; sent++) assert.equal(await send(), 503);
      assert.equal(existsSync(path), exists);
      if (end === undefined) return;
      end(path);
      // The checkpoint thread may still have the log of before.
      await until('plants are stored again', async () => (await send()) === 200);
    }));
}

for (const isUsed of [true, false]) {
  const when = isUsed ? 'after a plant' : 'before the first plant';
  test(`no token is created or revoked in deleted files, ${when}`, async () => {
    const store = await sqlite.newDatabase();
    await using engine = await openStore(store);
    const token = { hash: 'hash', label: 'label', createdAt: Date.now(), expiresAt: null };
    await engine.tokenTable.createToken(token);
    if (isUsed) await commit(engine, { id: 1n, name: 'oak' });
    // Without its index, the store would be rejected before the change.
    for (const suffix of ['', '-wal']) rmSync(store.replace('sqlite:', '') + suffix);
    await assert.rejects(engine.tokenTable.revokeToken('label', Date.now()), StoreUnavailable);
    await assert.rejects(
      engine.tokenTable.createToken({ ...token, hash: 'other', label: 'other' }),
      StoreUnavailable,
    );
  });
}

for (const [what, suffix] of [
  ['log', '-wal'],
  ['index', '-shm'],
]) {
  test(`a deleted ${what} causes one 503, also before the first plant`, () =>
    withService(async ({ service, path, send }) => {
      rmSync(`${path}${suffix}`);
      assert.equal(await send(), 503);
      assert.equal(await send(), 200);
      rmSync(`${path}${suffix}`);
      // The writer closes its connection, and SQLite then copies the deleted log into the database.
      assert.equal(await send(), 503);
      assert.equal(await send(), 200);
      assert.ok(service.logged.some(line => line.includes('does not confirm plants')));
    }));
}

test('a service that stops after its index was deleted loses no commit of a command', async () => {
  const store = await sqlite.newDatabase();
  const path = store.replace('sqlite:', '');
  {
    await using engine = await openStore(store);
    const token = { hash: 'hash', label: 'label', createdAt: Date.now(), expiresAt: null };
    await engine.tokenTable.createToken(token);
    await commit(engine, { id: 1n, name: 'oak' });
    rmSync(`${path}-shm`);
    const { stderr } = await runProgram(['token', 'revoke', 'label', '--database', store]);
    assert.match(stderr, /^revoked token "label"/);
  }
  const [token] = await sqlite.sql(store, 'SELECT revoked_at IS NOT NULL AS is_revoked FROM token');
  assert.deepEqual(token, { is_revoked: 1 });
});

// Not by a service: its reads of the token table notice the moved files, too.
test('a failing checkpoint causes a warning until one succeeds', async () => {
  const database = await sqlite.newDatabase();
  await using engine = await openStore(database);
  await commit(engine, { id: 1n, name: 'oak' });
  // This must precede the first checkpoint.
  const files = ['', '-wal', '-shm'].map(suffix => `${database.replace('sqlite:', '')}${suffix}`);
  for (const file of files) renameSync(file, `${file}.away`);
  await until('it warns', async () => (await engine.warnings()).length > 0);
  const [warning] = await engine.warnings();
  assert.match(warning!.fault, /^the write-ahead log cannot be copied into the database file, so it grows: /);
  for (const file of files) renameSync(`${file}.away`, file);
  await commit(engine, { id: 2n, name: 'oak' });
  await until('the warning ends', async () => (await engine.warnings()).length === 0);
});

for (const [what, suffix] of [
  ['log', '-wal'],
  ['index', '-shm'],
]) {
  const title = `a deleted ${what} under load loses no confirmed plant, even if the service is killed later`;
  test(title, async () => {
    const store = await sqlite.newDatabase();
    const path = store.replace('sqlite:', '');
    const log: LoggedRequest[] = [];
    await using serve = await startServe(store);
    const clients = Array.from({ length: 16 }, () => new LoggingClient(serve.url, serve.token, log));
    let sent = 0n;
    let sentMax = 1_000_000n;
    // Large plants with distant ids fill many pages, which SQLite could confuse.
    const sendAll = async (client: LoggingClient): Promise<void> => {
      while (sent < sentMax) {
        const number = ++sent;
        const id = BigInt.asIntN(64, number * 0x9e3779b97f4a7c15n);
        await client.send({ id, name: `${number}`.padEnd(1500, 'x') });
      }
    };
    const load = Promise.all(clients.map(sendAll));
    await until('many plants are stored and copied', () => sent > 400n && statSync(path).size > 200_000);
    rmSync(`${path}${suffix}`);
    // A command makes another index. Without a log it fails until the service has made another one.
    const created = await runProgram(['token', 'create', 'label', '--database', store]);
    sentMax = sent + 300n;
    await load;
    await serve.stop('SIGKILL');
    await Promise.all(clients.map(client => client.close()));

    assert.deepEqual(await sqlite.sql(store, 'PRAGMA integrity_check'), [{ integrity_check: 'ok' }]);
    assert.deepEqual(await faultsIn(store, log), []);
    const tokens = await sqlite.sql(store, "SELECT label FROM token WHERE label = 'label'");
    assert.equal(tokens.length, created.exitCode === 0 ? 1 : 0);
    assert.equal(log.at(-1)?.response?.status, 200, 'plants are stored after the deletion');
  });
}
