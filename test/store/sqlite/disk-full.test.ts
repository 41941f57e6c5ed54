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
/** No file can grow beyond the limit, which binds every user on every POSIX system; `ulimit -f` counts half KiB. */
const LIMIT_AND_RUN = `ulimit -S -f ${LIMIT_BYTES / 512} && exec "$0" "$@"`;

// The fault scenario `disk-limits` does the same with a full file system of its own, for which it must be root.
test('files that cannot grow, and room again: 503 in between, nothing lost, nothing rejected stored', async () => {
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
    assert.ok(id > -200n, 'ten times the limit was stored');
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
  // This process has no such limit: it moves the write-ahead log into the database.
  await sqlite.sql(database, 'PRAGMA wal_checkpoint(TRUNCATE)');
  await until('it finds out that there is room again', async () => {
    return (await client.send(inDoubt[0]!.plant)).response?.status === 200;
  });
  for (const { plant } of inDoubt) assert.equal((await client.send(plant)).response?.status, 200);
  await client.close();
  assert.deepEqual(await faultsIn(database, log), [], 'when there was room again');
  assert.equal((await service.stop('SIGTERM')).exitCode, 0);
});

test('a log that cannot be written holds up neither plants nor the end', async () => {
  const database = await sqlite.newDatabase();
  const log = `${database.replace('sqlite:', '')}.log`;
  writeFileSync(log, Buffer.alloc(LIMIT_BYTES));
  const prefix = ['sh', '-c', `${LIMIT_AND_RUN} >>'${log}'`];
  await using service = await startServe(database, [], { prefix });
  assert.equal(await sendPlant(service.url, service.token, 1n), 200);
  assert.equal((await service.stop('SIGTERM')).exitCode, 0);
});
