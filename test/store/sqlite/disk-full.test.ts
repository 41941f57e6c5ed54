import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { test } from 'node:test';
import type { LoggedRequest } from '../../harness/client-log.ts';
import { LoggingClient } from '../../harness/logging-client.ts';
import { sendPlant, startServe } from '../../harness/program.ts';
import { RandomLoad } from '../../harness/random-load.ts';
import { SEED } from '../../harness/seeded-random.ts';
import { sqliteUnderTest } from '../../harness/store-under-test.ts';
import { faultsIn } from '../../harness/stored-revisions.ts';
import { until } from '../../harness/until.ts';

const sqlite = sqliteUnderTest();

const LIMIT_BYTES = 2 * 1024 * 1024;
/** Limits the size of every file, also for root. `ulimit -f` counts units of 512 bytes. */
const LIMIT_AND_RUN = `ulimit -S -f ${LIMIT_BYTES / 512} && exec "$0" "$@"`;

// The fault scenario `disk-limits` uses a full file system instead, and needs root.
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
  await until('plants are stored again', async () => {
    return (await client.send(inDoubt[0]!.plant)).response?.status === 200;
  });
  for (const { plant } of inDoubt) assert.equal((await client.send(plant)).response?.status, 200);
  await client.close();
  assert.deepEqual(await faultsIn(database, log), [], 'after the disk has space again');
  assert.equal((await service.stop('SIGTERM')).exitCode, 0);
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
