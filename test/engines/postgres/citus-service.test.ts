import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { citusCatalog } from '../../harness/citus-catalog.ts';
import { freePort } from '../../harness/free-port.ts';
import { addToken, startTestService } from '../../harness/running-service.ts';
import { newPlant, readyz, send } from '../../harness/store-outage.ts';
import { databaseName, openStore, postgresUnderTest } from '../../harness/store-under-test.ts';
import { until } from '../../harness/until.ts';

const { server: coordinator } = await postgresUnderTest();
const { server: worker } = await postgresUnderTest();

/** A service on a coordinator and a worker, with a token. */
async function startCitus() {
  const url = await citusCatalog(coordinator, worker.port);
  const database = databaseName(url);
  await worker.query(`CREATE DATABASE ${database}`);
  await (await openStore(worker.url(database))).close();
  const token = await addToken(url, 'sender');
  const service = await startTestService({ database: url });
  return { ...service, token, database, url: service.url, coordinatorUrl: url };
}

/** Sends plants until a promise settles. @returns the statuses of the responses */
async function statusesUntil(
  service: Awaited<ReturnType<typeof startCitus>>,
  ended: Promise<unknown>,
): Promise<Set<number>> {
  let isOver = false;
  void ended.finally(() => (isOver = true)).catch(() => {});
  const statuses = new Set<number>();
  while (!isOver) statuses.add((await send(service, newPlant(), [])).status);
  return statuses;
}

test('a fresh instance is ready without warnings, and writes on the worker', async () => {
  await using service = await startCitus();
  assert.deepEqual(await readyz(service), {
    status: 'ready',
    verdict: { state: 'well', sentence: 'plants can be stored, and all checks pass', advice: '' },
    restartedAt: null,
  });
  assert.equal((await send(service, newPlant(), [])).status, 200);
  const count = 'SELECT count(*)::integer FROM plant_revision';
  assert.deepEqual(await worker.query(count, service.database), [{ count: 1 }]);
  assert.deepEqual(await coordinator.query(count, service.database), [{ count: 0 }]);
});

test('a command that would replace the table waits until its lock timeout, and is reported', async () => {
  await using service = await startCitus();
  // What undistribute_table and alter_distributed_table do first.
  const lock = `SET lock_timeout = '4s'; LOCK TABLE plant_revision IN EXCLUSIVE MODE`;
  const command = coordinator.query(`BEGIN; ${lock}`, service.database);
  const statuses = statusesUntil(service, command);
  const isReported = async () => {
    const { warnings = [] } = await readyz(service);
    return warnings.some(text => /a command waits to replace the table plant_revision/.test(text));
  };
  await until('the command is reported', isReported);
  await assert.rejects(command, { code: '55P03' });
  assert.deepEqual([...(await statuses)], [200]);
  await until('the warning ends', async () => (await readyz(service)).warnings === undefined);
});

test('a schema step runs while plants arrive; what endangers plants rejects them', async () => {
  await using service = await startCitus();
  const { database } = service;
  assert.equal((await send(service, newPlant(), [])).status, 200);
  for (const [change, status, warns] of [
    [
      'ALTER TABLE plant_revision ADD COLUMN height integer',
      200,
      /^the column height of plant_revision is not/,
    ],
    ['ALTER TABLE plant_revision DROP COLUMN height', 200, undefined],
    [
      `CREATE FUNCTION drop_row() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
       CREATE TRIGGER lose BEFORE INSERT ON plant_revision FOR EACH ROW EXECUTE FUNCTION drop_row()`,
      503,
      /^the trigger lose of plant_revision is not/,
    ],
    ['DROP TRIGGER lose ON plant_revision', 200, undefined],
    [
      'ALTER TABLE plant_revision ALTER name TYPE varchar',
      503,
      /^the column name of plant_revision was changed/,
    ],
    ['ALTER TABLE plant_revision ALTER name TYPE text', 200, undefined],
    ['ALTER TABLE plant_revision DROP CONSTRAINT plant_revision_pkey', 503, /^the index plant_revision_pkey/],
  ] as const) {
    await coordinator.query(`DROP VIEW IF EXISTS plant; ${change}`, database);
    // The lock of the table makes the instance see the change before its next batch.
    assert.equal((await send(service, newPlant(), [])).status, status, change);
    const { warnings = [], reason = '' } = (await readyz(service)) as {
      warnings?: string[];
      reason?: string;
    };
    if (status === 503) assert.match(reason.replace(/^.*503 responses: /, ''), warns!, change);
    else if (warns !== undefined) assert.match(warnings.join(), warns, change);
  }
});

test('a batch whose lock was lost is not confirmed if the table was replaced meanwhile', async () => {
  await using service = await startCitus();
  const { database } = service;
  assert.equal((await send(service, newPlant(), [])).status, 200);
  const blocker = new pg.Client({ connectionString: worker.url(database) });
  await blocker.connect();
  for (const [replace, status] of [
    ['', 200],
    [
      `CREATE TABLE other (LIKE plant_revision INCLUDING ALL); DROP TABLE plant_revision CASCADE;
       ALTER TABLE other RENAME TO plant_revision;
       ALTER INDEX other_pkey RENAME TO plant_revision_pkey;
       UPDATE pg_dist_shard SET logicalrelid = 'plant_revision'::regclass`,
      503,
    ],
  ] as const) {
    await blocker.query('BEGIN; LOCK TABLE plant_revision IN EXCLUSIVE MODE');
    const response = send(service, newPlant(), []);
    const text = `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'`;
    await until('the batch waits on the worker', async () => (await worker.query(text, database)).length > 0);
    await coordinator.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'idle in transaction'; ${replace}`,
      database,
    );
    await blocker.query('ROLLBACK');
    assert.equal((await response).status, status);
  }
  await blocker.end();
});

test('workers that cannot be reached: the message names the parameter with which plants are stored', async () => {
  const url = await citusCatalog(coordinator, await freePort());
  const token = await addToken(url, 'sender');
  {
    await using service = await startTestService({ database: url });
    assert.equal((await send({ url: service.url, token }, newPlant(), [])).status, 503);
    const { reason } = (await readyz(service)) as { status: string; reason?: string };
    assert.match(reason!, /the worker 127\.0\.0\.1:\d+ cannot be used, so its plants get 503: /);
    assert.match(reason!, /or add citus=coordinator to the address if no worker can be reached from here/);
  }
  await using service = await startTestService({ database: `${url}?citus=coordinator` });
  assert.equal((await send({ url: service.url, token }, newPlant(), [])).status, 200);
  assert.equal((await readyz(service)).warnings, undefined);
  for (const [settings, loses] of [
    ['off on on', false],
    ['off on off', true],
  ] as const) {
    await coordinator.query(
      `CREATE OR REPLACE FUNCTION run_command_on_workers(command text, OUT nodename text, OUT nodeport integer,
         OUT success boolean, OUT result text) RETURNS SETOF record
         LANGUAGE sql AS $$ SELECT 'hidden', 5432, true, '${settings}' $$`,
      databaseName(url),
    );
    const isWarned = async () =>
      (await readyz(service)).warnings?.some(text => /^fsync is off on the worker hidden:5432/.test(text)) ===
      true;
    await until('fsync of the worker is a warning', isWarned);
    if (loses)
      await assert.rejects(
        startTestService({ database: `${url}?citus=coordinator` }),
        /synchronous_commit is off on the worker hidden:5432, so confirmed plants could be lost; set /,
      );
  }
});
