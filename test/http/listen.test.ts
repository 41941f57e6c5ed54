import assert from 'node:assert/strict';
import type { AddressInfo } from 'node:net';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { SHUTDOWN_GRACE_MS, WAITING_CONNECTIONS_MAX } from '../../src/http/limits.ts';
import { ReservedAddress } from '../../src/http/listen.ts';
import { freePort } from '../harness/free-port.ts';
import { chunked, RawConnection, requestBytes } from '../harness/raw-connection.ts';
import { addToken, type RunningService, startTestService } from '../harness/running-service.ts';
import { scrape } from '../harness/scrape.ts';
import { sqliteUnderTest } from '../harness/store-under-test.ts';
import { writeApart } from './connection-target.ts';

const sqlite = sqliteUnderTest();
const LIVEZ = 'GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n';

/** Begins a start that waits for the store until `letStart`. Otherwise it fails after 2 s. */
async function beginStart(): Promise<{
  token: string;
  starting: Promise<RunningService>;
  letStart(): void;
  open(listener: 'plants' | 'ops'): Promise<RawConnection>;
}> {
  const database = await sqlite.newDatabase();
  const token = await addToken(database, 'early');
  const lock = new DatabaseSync(database.replace('sqlite:', ''));
  lock.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; CREATE TABLE lock (a)');
  const [plants, ops] = [await freePort(), await freePort()];
  const host = '127.0.0.1';
  const listen = { listen: { host, port: plants }, ops: { host, port: ops } };
  const starting = startTestService({ database, ...listen });
  // It is awaited later.
  starting.catch(() => {});
  const open = async (port: number): Promise<RawConnection> => {
    for (;;) {
      const connection = await RawConnection.open(port).catch(() => undefined);
      if (connection !== undefined) return connection;
      await wait(1);
    }
  };
  const letStart = (): void => lock.close();
  return { token, starting, letStart, open: listener => open(listener === 'ops' ? ops : plants) };
}

test('connections during the start wait for the service, and then are as all others', async () => {
  const { token, starting, letStart, open } = await beginStart();
  using silent = await open('plants');
  using onFastPath = await open('plants');
  onFastPath.write(requestBytes(token, { body: '{"id":1,"name":"A"}' }));
  using onNode = await open('plants');
  onNode.write(requestBytes(token, chunked('{"id":2,"name":"A"}')));
  onNode.finish();
  using ops = await open('ops');
  ops.write(LIVEZ);
  for (const listener of ['plants', 'ops'] as const) (await open(listener)).socket.resetAndDestroy();
  letStart();
  await using service = await starting;
  assert.equal((await onFastPath.response()).headers.get('plant-id'), '1');
  assert.equal((await onNode.response()).headers.get('plant-id'), '2');
  assert.equal(await onNode.ended, 'closed');
  assert.equal((await ops.response()).status, 200);
  assert.equal((await scrape(service.opsUrl)).values.get('plant_store_connections'), 2);

  // A shutdown waits for the rest of a request.
  const request = requestBytes(token, { body: '{"id":3,"name":"A"}' });
  await writeApart(silent, request.subarray(0, -1));
  const closed = service.close();
  await wait(SHUTDOWN_GRACE_MS + 100);
  silent.write(request.subarray(-1));
  assert.equal((await silent.response()).headers.get('plant-id'), '3');
  await closed;
});

test('connections during a start that fails are closed', async () => {
  const { starting, open } = await beginStart();
  using plants = await open('plants');
  using ops = await open('ops');
  ops.write(LIVEZ);
  await assert.rejects(starting, /database is locked/);
  for (const connection of [plants, ops]) {
    await connection.ended;
    assert.equal(connection.unread, '');
  }
});

test('further connections than may wait are closed', async () => {
  await using reserved = await ReservedAddress.reserve({ host: '127.0.0.1', port: 0 });
  const { port } = reserved.address() as AddressInfo;
  using opened = new DisposableStack();
  const open = async (): Promise<RawConnection> => opened.use(await RawConnection.open(port));
  const waiting = await Promise.all(Array.from({ length: WAITING_CONNECTIONS_MAX }, open));
  await (await open()).ended;
  assert.ok(waiting.every(({ socket }) => socket.readable));
});
