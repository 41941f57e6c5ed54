import assert from 'node:assert/strict';
import type { AddressInfo } from 'node:net';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { STATE_TIMEOUTS_MS } from '../../src/server/connection-timeouts.ts';
import { ReservedAddress } from '../../src/server/listen.ts';
import { freePort } from '../harness/free-port.ts';
import { chunked, RawConnection, requestBytes } from '../harness/raw-connection.ts';
import { addToken, startTestService } from '../harness/running-service.ts';
import { scrape } from '../harness/scrape.ts';
import { pathOf, sqliteUnderTest } from '../harness/store-under-test.ts';
import { until } from '../harness/until.ts';

const sqlite = sqliteUnderTest();
const host = '127.0.0.1';

/** Begins a start that waits for the lock of its store for up to 2 s, and then fails. */
async function beginStart() {
  const database = await sqlite.newDatabase();
  const token = await addToken(database, 'early');
  const lock = new DatabaseSync(pathOf(database));
  lock.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; CREATE TABLE lock (a)');
  const [port, opsPort] = [await freePort(), await freePort()];
  const starting = startTestService({ database, listen: { host, port }, ops: { host, port: opsPort } });
  // It is awaited later.
  starting.catch(() => {});
  const open = async (onPort = port): Promise<RawConnection> => {
    let connection: RawConnection | undefined;
    await until('the address accepts connections', async () => {
      connection = await RawConnection.open(onPort).catch(() => undefined);
      return connection !== undefined;
    });
    return connection!;
  };
  const ops = await open(opsPort);
  ops.write('GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n');
  return { token, lock, starting, open, ops };
}

test('connections during the start wait for the service, and then are as all others', async () => {
  const { token, lock, starting, open, ops } = await beginStart();
  const request = (id: number): Buffer => requestBytes(token, { body: `{"id":${id},"name":"A"}` });
  const [plain, inChunks, _silent] = [await open(), await open(), await open()];
  plain.write(request(1));
  inChunks.write(requestBytes(token, chunked('{"id":2,"name":"A"}')));
  inChunks.finish();
  (await open()).socket.resetAndDestroy();
  lock.close();
  await using service = await starting;
  assert.equal((await plain.response()).headers.get('plant-id'), '1');
  assert.equal((await inChunks.response()).headers.get('plant-id'), '2');
  assert.equal(await inChunks.ended, 'closed');
  assert.equal((await ops.response()).status, 200);
  assert.equal((await scrape(service.opsUrl)).values.get('plant_store_connections'), 2);
});

test('connections during a start that fails are closed', async () => {
  const { starting, open, ops } = await beginStart();
  const plants = await open();
  await assert.rejects(starting, /database is locked/);
  assert.ok(['closed', 'reset'].includes(await plants.ended) && (await ops.ended));
});

test('abandoned connections do not take the place of those that come later', async () => {
  await using address = await ReservedAddress.reserve({ host, port: 0 });
  const { port } = address.address() as AddressInfo;
  const open = (): Promise<RawConnection> => RawConnection.open(port);
  const oldest = await open();
  for (let count = 1; count < 1_024; count++) await open();
  const latest = await open();
  assert.notEqual(await oldest.ended, undefined);
  assert.ok(!latest.socket.readableEnded);
});

test('a connection that is not used is closed, and one in use stays open', async t => {
  const { idle } = STATE_TIMEOUTS_MS;
  t.after(() => (STATE_TIMEOUTS_MS.idle = idle));
  STATE_TIMEOUTS_MS.idle = 1_000;
  await using service = await startTestService();
  const open = (): Promise<RawConnection> => RawConnection.open(service.address.port);
  using unused = await open();
  using used = await open();
  let id = 0;
  const create = async (connection: RawConnection): Promise<void> => {
    connection.write(requestBytes(service.token, { body: `{"id":${id++},"name":"A"}` }));
    assert.equal((await connection.response()).status, 200);
  };
  await create(unused);
  await until('it is closed', async () => {
    await create(used);
    return unused.socket.readableEnded;
  });
  await create(used);
});
