import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { closeSync, openSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import type { LoggedRequest } from '../../harness/client-log.ts';
import { freePort } from '../../harness/free-port.ts';
import { LoggingClient } from '../../harness/logging-client.ts';
import { mountNamespace } from '../../harness/mount-namespace.ts';
import { sendPlant, startServe } from '../../harness/program.ts';
import { RandomLoad } from '../../harness/random-load.ts';
import { SEED } from '../../harness/seeded-random.ts';
import { openNewStore, sqliteUnderTest } from '../../harness/store-under-test.ts';
import { faultsIn } from '../../harness/stored-revisions.ts';
import { testFolder } from '../../harness/test-folder.ts';
import { until } from '../../harness/until.ts';

const sqlite = sqliteUnderTest();

const LIMIT_BYTES = 2 * 1024 * 1024;
/** Limits the size of every file, also for root. `ulimit -f` counts units of 512 bytes. */
const LIMIT_AND_RUN = `ulimit -S -f ${LIMIT_BYTES / 512} && exec "$0" "$@"`;

// The fault scenario `failing-calls` lets each write fail.
test('while files cannot grow plants get 503; no confirmed plant is lost, no rejected one is stored', async () => {
  console.log(`repeat with PLANT_STORE_TEST_SEED=${SEED}`);
  const database = await sqlite.newDatabase();
  await using service = await startServe(database, [], { prefix: ['sh', '-c', LIMIT_AND_RUN] });
  const log: LoggedRequest[] = [];
  const load = new RandomLoad(service.url, service.token, log, SEED);
  await load.inFlight();
  const failed = (): LoggedRequest[] =>
    log.filter(({ response }) => response === undefined || response.status >= 500);
  const client = new LoggingClient(service.url, service.token, log);
  for (let id = -1n; failed().length < 5; id--) {
    assert.ok(id > -200n, 'more than ten times the limit is stored');
    await client.send({ id, name: 'x'.repeat(100_000) });
  }
  await until('200 plants are not confirmed', () => failed().length >= 200);
  await load.stop();

  for (const { response } of failed()) {
    assert.equal(response?.status, 503);
    assert.match(response.retryAfter ?? '', /^[1-9][0-9]*$/);
    assert.equal(JSON.parse(response.body).error, 50302);
  }
  assert.deepEqual(await faultsIn(database, log), [], 'while the disk is full');

  const inDoubt = failed().slice(-20);
  // This process has no limit, so it can copy the write-ahead log into the database.
  await sqlite.sql(database, 'PRAGMA wal_checkpoint(TRUNCATE)');
  const isStored = async () => (await client.send(inDoubt[0]!.plant)).response?.status === 200;
  await until('plants are stored again', isStored);
  for (const { plant } of inDoubt) assert.equal((await client.send(plant)).response?.status, 200);
  await client.close();
  assert.deepEqual(await faultsIn(database, log), [], 'after the disk has space again');
  assert.equal((await service.stop('SIGTERM')).exitCode, 0);
});

test('on a full disk /readyz is 503 although some plants are stored, and 200 without a plant when space is free', async () => {
  const inNamespace = mountNamespace('a full disk');
  if (inNamespace === undefined) return;
  const disk = testFolder();
  const onSmallDisk = `mount -t tmpfs -o size=40m tmpfs '${disk}' && exec "$0" "$@"`;
  const opsPort = await freePort();
  const flags = ['--ops', `127.0.0.1:${opsPort}`];
  const prefix = [...inNamespace, 'sh', '-c', onSmallDisk];
  await using service = await startServe(`sqlite:${disk}/plants.db`, flags, { prefix });
  const readyz = async () => {
    const response = await fetch(`http://127.0.0.1:${opsPort}/readyz`);
    return `${response.status} ${await response.text()}`;
  };
  const log: LoggedRequest[] = [];
  const clients = Array.from({ length: 20 }, () => new LoggingClient(service.url, service.token, log));
  await clients[0]!.send({ id: 0n, name: 'makes the write-ahead log' });

  // The disk as the service sees it.
  const filler = `/proc/${service.child.pid}/root${disk}/filler`;
  assert.throws(() => writeFileSync(filler, Buffer.alloc(50_000_000)), { code: 'ENOSPC' });
  const send = async (client: LoggingClient, first: number): Promise<void> => {
    for (let id = first; id < first + 100; id++) {
      // Only the short ones fit into what is left.
      await client.send({ id: BigInt(id), name: 'x'.repeat(id % 10 === 0 ? 10 : 5_000) });
    }
  };
  await Promise.all(clients.map((client, index) => send(client, index * 100 + 1)));
  await until('the service is not ready', async () =>
    /^503 .*the disk of the store is full \(\d+ MB free\), so commits fail/.test(await readyz()),
  );
  const failing = log.find(({ response }) => response?.status === 503)!;
  assert.ok(performance.now() - failing.respondedAt > 5_000, 'a short failure changes nothing');
  truncateSync(filler, statSync(filler).size - 1_000_000);
  await wait(2_500);
  assert.match(await readyz(), /^503 /, 'a batch needs more space');
  const counts = Map.groupBy(log, ({ response }) => response?.status);
  assert.ok(counts.get(503)!.length > 1_500, 'most plants were rejected');

  rmSync(filler);
  await until('the service is ready', async () => /^200 .*nearly full/.test(await readyz()));
  assert.equal((await clients[0]!.send({ id: 1n, name: 'oak' })).response?.status, 200);
  await Promise.all(clients.map(client => client.close()));
});

test('a service log that cannot be written delays neither plants nor the shutdown', async () => {
  const database = await sqlite.newDatabase();
  const log = `${database.replace('sqlite:', '')}.log`;
  writeFileSync(log, Buffer.alloc(LIMIT_BYTES));
  const prefix = ['sh', '-c', `${LIMIT_AND_RUN} >>'${log}'`];
  await using service = await startServe(database, [], { prefix });
  assert.equal(await sendPlant(service.url, service.token, 1n), 200);
  assert.equal((await service.stop('SIGTERM')).exitCode, 0);
});

test('statistics return the last known sizes while the file system hangs', async () => {
  await using store = await openNewStore(sqlite);
  const before = await store.statistics();
  const fifo = `${testFolder()}/fifo`;
  execFileSync('mkfifo', [fifo]);
  // Each occupies a thread of Node's pool until the FIFO has a writer, as a hanging `stat` does.
  const opening = Array.from({ length: 4 }, () => open(fifo));
  try {
    assert.deepEqual(await store.statistics(), before);
  } finally {
    const writer = openSync(fifo, 'r+');
    for (const file of await Promise.all(opening)) await file.close();
    closeSync(writer);
  }
});
