import assert from 'node:assert/strict';
import { copyFileSync, linkSync, renameSync, rmSync } from 'node:fs';
import { test } from 'node:test';
import { openReader, openServedStore } from '../src/store/open-store.ts';
import { StoreRefused } from '../src/store/plant-store.ts';
import { RawConnection, requestBytes } from './raw-connection.ts';
import { startTestService } from './running-service.ts';

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
