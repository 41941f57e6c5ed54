import assert from 'node:assert/strict';
import { copyFileSync, linkSync, mkdtempSync, renameSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { openReader, openServedStore } from '../src/store/open-store.ts';
import { StoreRefused } from '../src/store/plant-store.ts';
import type { LoggedRequest } from './harness/client-log.ts';
import { LoggingClient } from './harness/logging-client.ts';
import { startServe } from './harness/program.ts';
import { RawConnection, requestBytes } from './harness/raw-connection.ts';
import { faultsIn } from './harness/stored-revisions.ts';
import { until } from './harness/until.ts';
import { startTestService } from './running-service.ts';

/** A store that is larger than this has had its log copied into it. */
const COPIED_BYTES = 200_000;

type Service = Awaited<ReturnType<typeof startTestService>>;

async function send(service: Service, id: number): Promise<number> {
  using connection = await RawConnection.open(service.address.port);
  connection.write(requestBytes(service.token, { body: `{"id":${id},"name":"Plant ${id}"}` }));
  return (await connection.answer()).status;
}

async function assertStored(service: Service, ids: bigint[]): Promise<void> {
  const reader = await openReader(service.database);
  for (const id of ids) assert.equal((await reader.revisionsOf(id)).length, 1, `plant ${id}`);
  await reader.close();
}

test('no plant is answered 200 once the file is moved away, and all are again once it is back', async () => {
  await using service = await startTestService();
  const path = service.database.replace('sqlite:', '');
  assert.equal(await send(service, 1), 200);
  renameSync(path, `${path}.moved`);
  assert.equal(await send(service, 2), 503);
  assert.equal(await send(service, 3), 503);
  renameSync(`${path}.moved`, path);
  assert.equal(await send(service, 4), 200);
  await assertStored(service, [1n, 4n]);
});

test('a log that is deleted costs one 503, and what was answered 200 before and behind it is stored', async () => {
  await using service = await startTestService();
  assert.equal(await send(service, 1), 200);
  rmSync(`${service.database.replace('sqlite:', '')}-wal`);
  // The writer gives up its connection, and with that SQLite writes what was in the log into the database itself.
  assert.equal(await send(service, 2), 503);
  assert.equal(await send(service, 3), 200);
  await assertStored(service, [1n, 3n]);
});

test('a log that is deleted before the first plant costs one 503', async () => {
  await using service = await startTestService();
  rmSync(`${service.database.replace('sqlite:', '')}-wal`);
  assert.equal(await send(service, 1), 503);
  assert.equal(await send(service, 2), 200);
  await assertStored(service, [2n]);
  assert.ok(service.logged.some(line => line.includes('does not confirm plants')));
});

test('a log that is deleted after it was copied costs hardly more', async () => {
  await using service = await startTestService();
  const path = service.database.replace('sqlite:', '');
  const { mtimeMs } = statSync(path);
  for (let id = 1; id <= 200; id++) assert.equal(await send(service, id), 200);
  // The thread that copies the log has it open by then.
  await until('the log is in the file', () => statSync(path).mtimeMs > mtimeMs);
  rmSync(`${path}-wal`);
  assert.equal(await send(service, 201), 503);
  await until('plants are stored again', async () => (await send(service, 202)) === 200);
  await assertStored(service, [1n, 200n, 202n]);
});

test('a log that is deleted under load loses nothing, also when the service is killed behind it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'plant-store-sabotage-'));
  const path = join(folder, 'plants.db');
  const log: LoggedRequest[] = [];
  const serve = await startServe(`sqlite:${path}`);
  const clients = Array.from({ length: 16 }, () => new LoggingClient(serve.url, serve.token, log));
  let sent = 0n;
  // Far from each other and large, so that there are many pages that may be taken for others.
  const sendAll = async (client: LoggingClient, until: bigint): Promise<void> => {
    while (sent < until) {
      const number = ++sent;
      await client.send({
        id: BigInt.asIntN(64, number * 0x9e3779b97f4a7c15n),
        name: `${number}`.padEnd(1500, 'x'),
      });
    }
  };
  const load = Promise.all(clients.map(client => sendAll(client, 4_000n)));
  await until('much is stored', () => sent > 1_500n && statSync(path).size > COPIED_BYTES);
  rmSync(`${path}-wal`);
  await load;
  await serve.stop('SIGKILL');
  await Promise.all(clients.map(client => client.close()));

  using database = new DatabaseSync(path);
  assert.deepEqual(database.prepare('PRAGMA integrity_check').all(), [
    { __proto__: null, integrity_check: 'ok' },
  ]);
  assert.deepEqual(await faultsIn(`sqlite:${path}`, log), []);
  assert.ok(log.filter(({ answer }) => answer?.status === 200).length > 2_000, 'it goes on behind it');
  rmSync(folder, { recursive: true });
});

test('a file that takes the place of the store is not taken for it', async () => {
  await using service = await startTestService();
  const path = service.database.replace('sqlite:', '');
  assert.equal(await send(service, 1), 200);
  copyFileSync(path, `${path}.copy`);
  renameSync(`${path}.copy`, path);
  assert.equal(await send(service, 2), 503);
  assert.equal(await send(service, 3), 503);
});

test('a deleted store is not made anew under the service', async () => {
  await using service = await startTestService();
  const path = service.database.replace('sqlite:', '');
  assert.equal(await send(service, 1), 200);
  for (const suffix of ['', '-wal', '-shm']) rmSync(`${path}${suffix}`);
  for (const id of [1, 2, 3]) assert.equal(await send(service, id), 503);
  assert.ok(service.logged.some(line => line.includes('does not confirm plants')));
});

test('a store with two names is refused', async () => {
  await using service = await startTestService();
  const path = service.database.replace('sqlite:', '');
  linkSync(path, `${path}.link`);
  await assert.rejects(
    openServedStore({ database: `sqlite:${path}.link`, repeatedIdRule: 'revise', connections: 1 }),
    StoreRefused,
  );
  // Under the other name there is another log, without the plants that were stored last.
  await assert.rejects(openReader(`sqlite:${path}.link`), StoreRefused);
});
