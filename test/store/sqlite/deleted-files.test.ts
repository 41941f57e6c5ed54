import assert from 'node:assert/strict';
import { copyFileSync, existsSync, renameSync, rmSync, statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import type { LoggedRequest } from '../../harness/client-log.ts';
import { LoggingClient } from '../../harness/logging-client.ts';
import { startServe } from '../../harness/program.ts';
import { type RunningService, startTestService } from '../../harness/running-service.ts';
import { scrape } from '../../harness/scrape.ts';
import { readyz } from '../../harness/store-outage.ts';
import { sqliteUnderTest } from '../../harness/store-under-test.ts';
import { faultsIn } from '../../harness/stored-revisions.ts';
import { until } from '../../harness/until.ts';

/** A store that is larger than this has had its log copied into it. */
const COPIED_BYTES = 200_000;

const sqlite = sqliteUnderTest();

/** A service, the path of its store, and a client that sends one plant after the other. */
interface Sabotaged {
  service: RunningService;
  path: string;
  send(): Promise<number | undefined>;
}

/** What was answered 200 is stored at the end, whatever was done to the files. */
async function withService(run: (sabotaged: Sabotaged) => Promise<void>): Promise<void> {
  await using service = await startTestService();
  const log: LoggedRequest[] = [];
  const client = new LoggingClient(service.url, service.token, log);
  const send = async (): Promise<number | undefined> => {
    const { response } = await client.send({ id: BigInt(log.length), name: 'oak' });
    return response?.status;
  };
  const path = service.database.replace('sqlite:', '');
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
    'is deleted, and it is not made anew',
    path => {
      for (const suffix of ['', '-wal', '-shm']) rmSync(`${path}${suffix}`);
    },
  ],
];
for (const [what, begin, end] of SABOTAGES) {
  test(`no plant is confirmed once the file ${what}`, () =>
    withService(async ({ path, send }) => {
      assert.equal(await send(), 200);
      begin(path);
      const isThere = existsSync(path);
      for (let sent = 0; sent < 3; sent++) assert.equal(await send(), 503);
      assert.equal(existsSync(path), isThere);
      if (end === undefined) return;
      end(path);
      assert.equal(await send(), 200);
    }));
}

test('a log that is deleted costs one 503, also before the first plant', () =>
  withService(async ({ service, path, send }) => {
    rmSync(`${path}-wal`);
    assert.equal(await send(), 503);
    assert.equal(await send(), 200);
    rmSync(`${path}-wal`);
    // The writer closes its connection, and with that SQLite writes what was in the log into the database itself.
    assert.equal(await send(), 503);
    assert.equal(await send(), 200);
    assert.ok(service.logged.some(line => line.includes('does not confirm plants')));
  }));

test('a log that is deleted after it was copied costs hardly more', () =>
  withService(async ({ path, send }) => {
    const { mtimeMs } = statSync(path);
    assert.equal(await send(), 200);
    // The thread that copies the log has it open by then.
    await until('the log is in the file', () => statSync(path).mtimeMs > mtimeMs);
    rmSync(`${path}-wal`);
    assert.equal(await send(), 503);
    await until('plants are stored again', async () => (await send()) === 200);
  }));

test('a log that cannot be copied into the file is warned of, in the log, in /readyz and to Prometheus', () =>
  withService(async ({ service, path, send }) => {
    assert.equal(await send(), 200);
    // Before the first checkpoint, which comes soon.
    const files = ['', '-wal', '-shm'].map(suffix => `${path}${suffix}`);
    for (const file of files) renameSync(file, `${file}.away`);
    await until('it is warned of', async () => (await readyz(service)).warnings !== undefined);
    const { warnings } = await readyz(service);
    assert.match(String(warnings), /^the write-ahead log cannot be copied into the database file/);
    assert.equal((await scrape(service.opsUrl)).values.get('plant_store_store_warnings'), 1);
    assert.deepEqual(service.logged, [`the store warns: ${warnings}`]);

    for (const file of files) renameSync(`${file}.away`, file);
    assert.equal(await send(), 200);
    await until('nothing is left to warn of', async () => (await readyz(service)).warnings === undefined);
    assert.equal(service.logged.at(-1), 'the store has nothing to warn of any more');
  }));

test('a log that is deleted under load loses nothing, also when the service is killed behind it', async () => {
  const store = await sqlite.newDatabase();
  const path = store.replace('sqlite:', '');
  const log: LoggedRequest[] = [];
  const serve = await startServe(store);
  const clients = Array.from({ length: 16 }, () => new LoggingClient(serve.url, serve.token, log));
  let sent = 0n;
  // Far from each other and large, so that there are many pages that may be taken for others.
  const sendAll = async (client: LoggingClient): Promise<void> => {
    while (sent < 4_000n) {
      const number = ++sent;
      const id = BigInt.asIntN(64, number * 0x9e3779b97f4a7c15n);
      await client.send({ id, name: `${number}`.padEnd(1500, 'x') });
    }
  };
  const load = Promise.all(clients.map(sendAll));
  await until('much is stored', () => sent > 1_500n && statSync(path).size > COPIED_BYTES);
  rmSync(`${path}-wal`);
  await load;
  await serve.stop('SIGKILL');
  await Promise.all(clients.map(client => client.close()));

  {
    using database = new DatabaseSync(path);
    const [check] = database.prepare('PRAGMA integrity_check').all();
    assert.equal(check?.integrity_check, 'ok');
  }
  assert.deepEqual(await faultsIn(store, log), []);
  assert.ok(log.filter(({ response }) => response?.status === 200).length > 2_000, 'it goes on behind it');
});
