import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LoggedRequest } from '../../harness/client-log.ts';
import { openReader } from '../../harness/open-store.ts';
import { assertFailed, FREE_PORTS, runProgram } from '../../harness/program.ts';
import { startTestService } from '../../harness/running-service.ts';
import { assertBack, isReady, newPlant, send } from '../../harness/store-outage.ts';
import { databaseName } from '../../harness/store-under-test.ts';
import { faultsIn } from '../../harness/stored-revisions.ts';
import { startSynchronousPair } from '../../harness/synchronous-pair.ts';
import { until } from '../../harness/until.ts';

test('without its standby the primary confirms no plant, and after a failover the standby is used', async () => {
  await using pair = await startSynchronousPair();
  const settings = { database: pair.url('standby') };
  await using service = await startTestService(settings);
  await using other = await startTestService(settings);
  await using rejecting = await startTestService({ ...settings, repeatedIdRule: 'reject' });
  other.token = service.token;
  rejecting.token = service.token;
  const log: LoggedRequest[] = [];
  await send(service, newPlant(), log);
  const idle = await pair.standby.query(
    `SELECT count(*) AS count FROM pg_stat_activity WHERE application_name = 'plant-store'`,
  );
  assert.equal(idle[0]!.count, '0', 'the connection to a read-only host is closed');

  await pair.standby.stop();
  const plant = newPlant();
  const sent = send(service, plant, log);
  // An administrator may cancel the wait. PostgreSQL then reports success with a warning.
  const cancelWaits = async (): Promise<boolean> => {
    const cancelled = await pair.primary.query(
      `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`,
    );
    return cancelled.length > 0;
  };
  await until('the commit waits for the standby', cancelWaits);
  assert.equal((await sent).status, 503);
  const rows = await pair.primary.query(
    `SELECT name FROM plant_revision WHERE id = ${plant.id}`,
    databaseName(pair.database),
  );
  assert.equal(rows.length, 1, 'the primary stores the plant and shows it to others');
  // A retry, another instance, and one that rejects the id: a failover may lose what they see.
  let responded = false;
  const promised = Promise.all([
    send(service, plant, log),
    send(other, plant, log),
    send(rejecting, { ...plant, name: 'elm' }, log),
  ]).finally(() => {
    responded = true;
  });
  // With pauses: each look opens a connection.
  await until('all have responses', async () => {
    await cancelWaits();
    return responded;
  });
  const responses = await promised;
  assert.deepEqual(
    responses.map(({ status }) => status),
    [503, 503, 503],
  );
  assert.equal(await isReady(service), false);
  // Each waiting commit would occupy a connection until the standby is back.
  await until('no commit waits after its timeout of 2 s', async () => {
    const waiting = await pair.primary.query(
      `SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query_start < now() - interval '2 s'`,
    );
    return waiting.length === 0;
  });

  await pair.standby.startAgain();
  await pair.isSynchronous();
  await assertBack(service, log);
  await until('a retry finds it', async () => (await send(service, plant, log)).outcome === 'unchanged');
  assert.equal((await send(other, plant, log)).outcome, 'unchanged');
  assert.equal((await send(rejecting, { ...plant, name: 'elm' }, log)).status, 400);
  assert.deepEqual(await faultsIn(pair.database, log), []);

  await pair.primary.signal('SIGSTOP');
  await until('no host accepts writes', async () => !(await isReady(service)));
  assert.equal((await send(service, newPlant(), log)).status, 503);
  assertFailed(
    await runProgram(['serve', '--database', `${pair.url('primary')}?connect_timeout=1`, ...FREE_PORTS]),
    /^plant-store: the store at .* is read-only \(a standby, or default_transaction_read_only is on\); name the host that accepts writes\n$/,
  );
  // The timeout is longer than the promotion. So this search must retry the standby while the
  // primary is silent.
  const opening = openReader(`${pair.url('primary')}?connect_timeout=60`);
  await pair.promote();
  await (await opening)[Symbol.asyncDispose]();
  await assertBack(service, log);
  assert.deepEqual(await faultsIn(pair.standbyDatabase, log), []);
});
