import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { DatabaseSync } from 'node:sqlite';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { QUEUE_PLANTS_MAX, SHUTDOWN_GRACE_MS } from '../src/contract/limits.ts';
import { openReader } from '../src/store/open-store.ts';
import { assertErrorAnswer, assertPlantAnswer } from './answer-assertions.ts';
import { RawConnection, requestBytes } from './raw-connection.ts';
import { startTestService } from './running-service.ts';

/** Keeps every commit of the service waiting, as another program with an open transaction would. */
function holdStore(database: string): Disposable {
  const other = new DatabaseSync(database.replace('sqlite:', ''));
  other.exec('BEGIN IMMEDIATE');
  return { [Symbol.dispose]: () => other.close() };
}

test('a full queue answers 503 with Retry-After at once, and keeps every plant that it took', async () => {
  await using service = await startTestService();
  const count = QUEUE_PLANTS_MAX + 6_000;
  const requests = Array.from({ length: count }, (_, id) =>
    requestBytes(service.token, {
      body: `{"id":${id},"name":"Plant ${id}"}`,
      headers: { Connection: id === count - 1 ? 'close' : 'keep-alive' },
    }),
  );
  const held = holdStore(service.database);
  const socket = connect(service.address.port, '127.0.0.1');
  socket.write(Buffer.concat(requests));
  // Long enough to read them all; the few batches that lose their patience meanwhile leave the queue full.
  setTimeout(() => held[Symbol.dispose](), 5_000);

  const answers = (await text(socket)).split('HTTP/1.1 ').slice(1);
  assert.equal(answers.length, count);
  const refused = answers.filter(answer => answer.includes('"error":50301'));
  assert.ok(refused.length > 0, 'none was refused');
  assert.ok(refused.every(answer => answer.startsWith('503 ') && answer.includes('\r\nRetry-After: 1\r\n')));
  const reader = openReader(service.database);
  const stored = new Set(Array.from(reader.plants('latest'), ({ plant }) => Number(plant.id)));
  reader.close();
  for (const [id, answer] of answers.entries()) {
    if (answer.startsWith('200 ')) assert.ok(stored.has(id), `plant ${id} is lost`);
    if (answer.includes('"error":50301'))
      assert.ok(!stored.has(id), `plant ${id} is stored, though it was refused as busy`);
  }
});

test('/readyz says 503 while the store does not answer, and 200 when it does again', async () => {
  await using service = await startTestService();
  const ready = async (): Promise<{ status: number; body: unknown }> => {
    const response = await fetch(`${service.opsUrl}/readyz`);
    return { status: response.status, body: await response.json() };
  };
  assert.equal((await ready()).status, 200);
  using connection = await RawConnection.open(service.address.port);
  const held = holdStore(service.database);
  // Each batch waits for the lock as long as the writer has patience, so a look behind two of them comes too late.
  // Where both plants came in one turn they share a batch, and it takes another try.
  let sent = 0;
  let looked = await ready();
  for (let tries = 0; looked.status === 200 && tries < 8; tries++) {
    for (let batch = 0; batch < 2; batch++) {
      sent++;
      connection.write(requestBytes(service.token, { body: `{"id":${sent},"name":"A"}` }));
      await wait(100);
    }
    looked = await ready();
  }
  const { status, body } = looked;
  assert.equal(status, 503);
  assert.deepEqual(body, {
    status: 'not ready',
    reason: 'the store cannot be reached; the log has the cause',
  });
  assert.ok(service.logged.some(line => line.includes('cannot be reached')));
  held[Symbol.dispose]();
  for (let id = 1; id <= sent; id++) await connection.answer();
  assert.equal((await ready()).status, 200);
});

test('while it shuts down, /readyz says 503, what was begun is kept, and what begins late is answered 503', async () => {
  await using service = await startTestService();
  using connection = await RawConnection.open(service.address.port);
  const begun = requestBytes(service.token, { body: '{"id":1,"name":"Plant 1"}' });
  connection.write(begun.subarray(0, -1));
  await wait(50);
  const closed = service.close();
  const response = await fetch(`${service.opsUrl}/readyz`);
  assert.equal(response.status, 503);
  assert.deepEqual(await response.json(), { status: 'not ready', reason: 'shutting down' });

  await wait(SHUTDOWN_GRACE_MS + 100);
  connection.write(
    Buffer.concat([begun.subarray(-1), requestBytes(service.token, { body: '{"id":2,"name":"Plant 2"}' })]),
  );
  assertPlantAnswer(await connection.answer(), { name: 'Plant 1' });
  const late = await connection.answer();
  assertErrorAnswer(late, 50303);
  assert.equal(late.headers.get('retry-after'), '1');
  assert.equal(late.headers.get('connection'), 'close');
  await closed;
});
