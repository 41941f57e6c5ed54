import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { hashOf, type Shards, workerOf } from '../../../src/store/postgres/citus-shards.ts';
import { mayConcernCommit } from '../../../src/store/postgres/connection.ts';
import { kindOf } from '../../../src/store/postgres/failure.ts';

// Citus is not on npm. These values were recorded from Citus 13.2 on PostgreSQL 15.
// `npm run faults -- --citus URL` injects faults into a real cluster.

suite('Citus', () => {
  const ERRORS: [code: string, kind: ReturnType<typeof kindOf>, what: string][] = [
    ['08006', 'workerLost', 'a worker that accepts no connection, or was killed'],
    ['57P01', 'workerLost', 'a worker that shuts down'],
    ['57P03', 'workerLost', 'a worker that starts'],
    ['57014', 'retry', 'a worker that does not respond'],
    ['40P01', 'retry', 'a distributed deadlock'],
    ['0A000', 'connectionLost', 'a prepared statement whose table changed'],
    ['25006', 'connectionLost', 'a coordinator that became read-only'],
    ['42501', 'final', 'a missing right'],
  ];
  for (const [code, kind, what] of ERRORS)
    test(`${code}, from ${what}: ${kind}`, () => {
      const error = Object.assign(new Error('recorded'), { code, severity: 'ERROR' });
      assert.equal(kindOf(error, true), kind);
      if (kind === 'workerLost') assert.equal(kindOf(error), 'connectionLost', 'a plain server is lost');
    });

  const WARNINGS: [routine: string | undefined, concernsCommit: boolean, what: string][] = [
    ['SyncRepWaitForLSN', true, 'the server cancelled the wait for its standby'],
    ['DefaultCitusNoticeReceiver', true, 'a worker warns, for example that it cancelled this wait'],
    [undefined, true, 'an engine that names no function'],
    ['InitializeMaintenanceDaemonBackend', false, 'could not start maintenance background worker'],
  ];
  for (const [routine, concernsCommit, what] of WARNINGS)
    test(`a warning of ${routine}: ${what}`, () => assert.equal(mayConcernCommit(routine), concernsCommit));

  // SELECT worker_hash(id)
  const HASHES: [id: bigint, hash: number][] = [
    [1n, -1_905_060_026],
    [-1n, 385_747_274],
    [9_223_372_036_854_775_807n, -1_524_351_049],
    [-9_223_372_036_854_775_808n, -96_758_253],
  ];
  for (const [id, hash] of HASHES) test(`the hash of ${id}`, () => assert.equal(hashOf(id), hash));

  test('the worker of a plant is the one whose shard has its hash', () => {
    const [first, second] = [
      { host: 'first', port: 5432 },
      { host: 'second', port: 5432 },
    ];
    const shards: Shards = [
      { hashMin: -2_147_483_648, worker: first },
      { hashMin: -1_905_060_026, worker: second },
      { hashMin: 0, worker: undefined },
    ];
    assert.deepEqual(
      HASHES.map(([id]) => workerOf(shards, id)),
      [second, undefined, second, second],
    );
    assert.equal(workerOf(shards, 8n), first);
    assert.equal(workerOf([], 1n), undefined);
  });
});
