import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nextRevisions } from '../../../faults/citus.ts';
import { hashOf, type Shards, workerOf } from '../../../src/engines/postgres/citus/citus-shards.ts';
import { CITUS } from '../../../src/engines/postgres/citus/citus-topology.ts';
import { mayConcernCommit } from '../../../src/engines/postgres/connections/pg-connection.ts';
import { kindOf } from '../../../src/engines/postgres/postgres-errors.ts';
import { databaseName, openStore, postgresUnderTest } from '../../harness/store-under-test.ts';

// Citus is not on npm. These values were recorded from Citus 13.2 on PostgreSQL 15.
// `npm run faults -- --citus URL` injects faults into a real cluster.

test('errors of Citus: what a failed statement means for its connection', () => {
  for (const [code, kind] of [
    // A worker that accepts no connection or was killed, shuts down, or starts.
    ['08006', 'otherServerLost'],
    ['57P01', 'otherServerLost'],
    ['57P03', 'otherServerLost'],
    // A worker that does not respond, and a distributed deadlock.
    ['57014', 'retry'],
    ['40P01', 'retry'],
    // A prepared statement whose table changed, and a coordinator that became read-only.
    ['0A000', 'connectionLost'],
    ['25006', 'connectionLost'],
    ['42501', 'final'],
  ] as const) {
    const error = Object.assign(new Error('recorded'), { code, severity: 'ERROR' });
    assert.equal(kindOf(error, CITUS.spansServers), kind, code);
    if (kind === 'otherServerLost') assert.equal(kindOf(error), 'connectionLost', 'a plain server is lost');
  }
});

test('warnings of Citus: which ones may say that a commit is not durable', () => {
  // The server cancelled the wait for its standby; a worker warns; an engine names no function.
  for (const routine of ['SyncRepWaitForLSN', 'DefaultCitusNoticeReceiver', undefined])
    assert.equal(mayConcernCommit(routine, CITUS), true, String(routine));
  // It could not start the maintenance background worker.
  assert.equal(mayConcernCommit('InitializeMaintenanceDaemonBackend', CITUS), false);
});

test('the worker of a plant is the one whose shard has its hash', () => {
  // SELECT worker_hash(id)
  const HASHES: [id: bigint, hash: number][] = [
    [1n, -1_905_060_026],
    [-1n, 385_747_274],
    [9_223_372_036_854_775_807n, -1_524_351_049],
    [-9_223_372_036_854_775_808n, -96_758_253],
  ];
  for (const [id, hash] of HASHES) assert.equal(hashOf(id), hash);
  const first = { host: 'first', port: 5432 };
  const second = { host: 'second', port: 5432 };
  const shards: Shards = [
    { hashMin: -2_147_483_648, worker: first },
    { hashMin: -1_905_060_026, worker: second },
    { hashMin: 0, worker: undefined },
  ];
  const workers = HASHES.map(([id]) => workerOf(shards, id));
  assert.deepEqual(workers, [second, undefined, second, second]);
  assert.equal(workerOf(shards, 8n), first);
  assert.equal(workerOf([], 1n), undefined);
});

test('the rows that the fault scenario inserts fit the schema', async () => {
  const { server } = await postgresUnderTest();
  const database = databaseName(await server.createDatabase());
  await (await openStore(server.url(database))).close();
  await server.query(`INSERT INTO plant_revision VALUES (7, 1, 'Ficus', NULL, 0, 1, 0)`, database);
  await server.query(nextRevisions('plant_revision', [7n]), database);
  const rows = await server.query('SELECT max(revision) FROM plant_revision', database);
  assert.deepEqual(rows, [{ max: 10 }]);
});
