import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { SHUTDOWN_GRACE_MS } from '../../src/server/plant-server.ts';
import { SHUTDOWN_MS } from '../../src/server/timeouts.ts';
import { chunked, RawConnection, type RawResponse, requestBytes } from '../harness/raw-connection.ts';
import { type RunningService, startTestService } from '../harness/running-service.ts';
import { serverSideOf } from '../harness/server-side.ts';
import { holdStore } from '../harness/store-hold.ts';
import { storedRevisions } from '../harness/stored-revisions.ts';
import { until } from '../harness/until.ts';
import { assertClosed, assertCreated, assertRejected, plantJson, writeApart } from './connection-target.ts';

/** A service that waits for clients after the last response ends only after SHUTDOWN_MS. */
const END_WITHIN_MS = SHUTDOWN_MS - 100;
/** Well after idle connections are closed, and well before the end. */
const AFTER_GRACE_MS = SHUTDOWN_GRACE_MS + 300;

/** 50 MB in all: more than the kernel buffers for both ends, which is 36 MiB by default. */
const PADDED_REQUESTS = 500;
const PADDING_BYTES = 100_000;

function request({ token }: RunningService, id: number): Buffer {
  return requestBytes(token, { body: plantJson(id) });
}

/** A connection that has stored plant 1. */
async function openUsed(service: RunningService): Promise<RawConnection> {
  const connection = await RawConnection.open(service.address.port);
  connection.write(request(service, 1));
  assert.equal((await connection.response()).status, 200);
  return connection;
}

async function storedIds({ database }: RunningService): Promise<number[]> {
  const ids = (await storedRevisions(database)).map(({ plant }) => Number(plant.id));
  return ids.sort((one, other) => one - other);
}

/** Shuts down. @returns settles when the service has ended, and fails if that took too long */
async function close(service: RunningService): Promise<void> {
  const since = performance.now();
  await service.close();
  const tookMs = performance.now() - since;
  assert.ok(tookMs < END_WITHIN_MS, `it ended after ${tookMs} ms`);
}

// Concurrent, since real time passes in each test.
suite('while the service shuts down, a connection', { concurrency: true }, () => {
  test('that waits for responses gets all, and the last one closes it', async () => {
    await using service = await startTestService();
    using connection = await openUsed(service);
    using lone = await openUsed(service);
    using idle = await openUsed(service);
    using afterEmptyLine = await RawConnection.open(service.address.port);
    // RFC 9112 section 2.2: an empty line before a request is ignored.
    afterEmptyLine.write('GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n\r\n');
    await assertRejected(afterEmptyLine, 40401);
    const held = holdStore(service.database);
    await writeApart(connection, Buffer.concat([2, 3, 4].map(id => request(service, id))));
    await writeApart(lone, request(service, 5));
    const closed = close(service);
    await assertClosed(idle);
    await assertClosed(afterEmptyLine);
    held[Symbol.dispose]();
    await assertCreated(connection, 2, 'keep-alive');
    await assertCreated(connection, 3, 'keep-alive');
    await assertCreated(connection, 4, 'close');
    await assertCreated(lone, 5, 'close');
    // RFC 9112 section 9.6: requests after the response that closes are ignored.
    lone.write(request(service, 6));
    // The client leaves its side open, and the service does not wait for it.
    await assertClosed(connection);
    await assertClosed(lone);
    await closed;
    assert.deepEqual(await storedIds(service), [1, 2, 3, 4, 5]);
  });

  test('that sends a part of a request in the grace period gets a response when the rest arrives later', async () => {
    await using service = await startTestService();
    using withHeaders = await openUsed(service);
    using withoutHeaders = await openUsed(service);
    const [accepted, rejected] = [request(service, 2), request(service, 3)];
    const closed = close(service);
    await writeApart(withHeaders, accepted.subarray(0, -1));
    await writeApart(withoutHeaders, rejected.subarray(0, 60));
    await wait(AFTER_GRACE_MS);
    withHeaders.write(accepted.subarray(-1));
    withoutHeaders.write(rejected.subarray(60));
    await assertCreated(withHeaders, 2, 'close');
    await assertRejected(withoutHeaders, 50303);
    for (const connection of [withHeaders, withoutHeaders]) await assertClosed(connection);
    await closed;
    assert.deepEqual(await storedIds(service), [1, 2]);
  });

  test('that waits for a response and has sent a part of the next request gets both responses', async () => {
    await using service = await startTestService();
    using connection = await openUsed(service);
    const held = holdStore(service.database);
    const [second, third] = [request(service, 2), request(service, 3)];
    await writeApart(connection, Buffer.concat([second, third.subarray(0, -1)]));
    const closed = close(service);
    held[Symbol.dispose]();
    await assertCreated(connection, 2, 'keep-alive');
    connection.write(third.subarray(-1));
    await assertCreated(connection, 3, 'close');
    await closed;
    assert.deepEqual(await storedIds(service), [1, 2, 3]);
  });
});

test('a part of a request that never becomes whole delays no stop', async () => {
  await using service = await startTestService();
  using inHead = await openUsed(service);
  using inBody = await openUsed(service);
  using alwaysInBody = await openUsed(service);
  const bytes = request(service, 2);
  inHead.write(bytes.subarray(0, 40));
  inBody.write(bytes.subarray(0, -1));
  // Each of its writes ends a request and begins the next one.
  alwaysInBody.write(bytes.subarray(0, -5));
  const next = Buffer.concat([bytes.subarray(-5), bytes.subarray(0, -5)]);
  using _ = setInterval(() => alwaysInBody.write(next), 50);
  await close(service);
  await assertRejected(inHead, 50303);
  await assertRejected(inBody, 50303);
  assert.equal(await alwaysInBody.ended, 'closed');
  assert.match(alwaysInBody.unread, /^Connection: close\r$/m);
});

test('whole requests that the kernel has when the service stops get their responses, and the last one closes', async () => {
  await using service = await startTestService();
  const kinds: ((id: number) => Buffer)[] = [
    id => request(service, id),
    id => requestBytes(service.token, chunked(plantJson(id))),
    id => requestBytes(service.token, { body: plantJson(id), headers: { Origin: 'https://a.example' } }),
    id => requestBytes(service.token, { body: plantJson(id).padEnd(20_000) }),
    id => requestBytes(service.token, { body: plantJson(id), headers: { Expect: '100-continue' } }),
  ];
  using opened = new DisposableStack();
  const connections: RawConnection[] = [];
  for (const _ of kinds)
    for (let count = 0; count < 4; count++) connections.push(opened.use(await openUsed(service)));
  // The service cannot read before it stops: both run in this event loop.
  for (const [index, connection] of connections.entries()) {
    const bytesOf = kinds[index % kinds.length]!;
    connection.write(Buffer.concat([bytesOf(100 + index), bytesOf(200 + index)]));
  }
  const closed = close(service);
  for (const [index, connection] of connections.entries()) {
    await assertCreated(connection, 100 + index, 'keep-alive');
    await assertCreated(connection, 200 + index, 'close');
    await assertClosed(connection);
  }
  await closed;
});

test('clients that send without a pause do not delay the end, and the last response of each closes', async () => {
  await using service = await startTestService();
  using opened = new DisposableStack();
  const kinds = [request(service, 1), requestBytes(service.token, chunked(plantJson(1)))];
  // Writes that end within a request, and writes of whole requests.
  const floods = await Promise.all(
    [500, 5]
      .flatMap(count => kinds.map(bytes => [count, bytes] as const))
      .map(async ([count, bytes]) => {
        const connection = opened.use(await openUsed(service));
        const pipelined = Buffer.concat(Array.from({ length: count }, () => bytes));
        const send = (): void =>
          void connection.socket.write(pipelined, error => error || setImmediate(send));
        send();
        return connection;
      }),
  );
  await close(service);
  for (const { unread } of floods)
    assert.match(unread.slice(unread.lastIndexOf('HTTP/1.1 ')), /^Connection: close\r$/m);
});

// Not concurrent with the others: the load would delay their timing.
test('while the service shuts down, a client that reads late gets more responses than the buffers hold, and the last one closes', async () => {
  await using service = await startTestService();
  using connection = await openUsed(service);
  connection.socket.pause();
  const tag = 'x'.repeat(PADDING_BYTES);
  for (let id = 2; id < 2 + PADDED_REQUESTS; id++)
    connection.write(requestBytes(service.token, { body: `{"id":${id},"name":"A","tag":"${tag}"}` }));
  await until('responses wait to be read', () => serverSideOf(connection)!.writableLength > 0);
  const read = serverSideOf(connection)!.bytesRead;
  assert.ok(read < PADDED_REQUESTS * PADDING_BYTES, 'some requests are not read yet');

  const closed = close(service);
  await wait(AFTER_GRACE_MS);
  connection.socket.resume();
  assert.equal(await connection.ended, 'closed');
  const responses: RawResponse[] = [];
  while (connection.unread !== '') responses.push(await connection.response());
  connection.finish();
  await closed;
  const closing = responses.map(({ headers }) => headers.get('connection') === 'close');
  assert.equal(closing.indexOf(true), responses.length - 1, `of ${responses.length} responses`);
  const stored = responses.flatMap(({ headers }) => headers.get('plant-id') ?? []).map(Number);
  assert.deepEqual(await storedIds(service), [1, ...stored]);
});
