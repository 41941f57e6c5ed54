import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { after, before, suite, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { type RawConnection, requestBytes } from '../harness/raw-connection.ts';
import { serverSideOf } from '../harness/server-side.ts';
import { until } from '../harness/until.ts';
import {
  assertClosed,
  assertCreated,
  assertRejected,
  ConnectionTarget,
  GHOST_ID,
  plantJson,
} from './connection-target.ts';

/** The service cuts a client that reads nothing within 15 s. A slow machine gets some more time. */
const CUT_WITHIN_MS = 20_000;
/** Longer than a slow machine needs to fill the buffers and to cut: an upper limit. */
const TIMER_MS_MAX = 60_000;
/** Longer than the timeout for the rest of a request and one check, far shorter than the cut. */
const PAUSE_MS = 3_500;
/** Far more than the buffers between client and server hold. */
const OFFERED_BYTES = 128 * 1024 * 1024;
const ACCEPTED_BYTES_MAX = OFFERED_BYTES / 4;

let target: ConnectionTarget;

before(async () => {
  target = await ConnectionTarget.start();
});
after(() => target.end());

// Concurrent, since up to 15 s of real time pass in each test.
suite('a client that is too slow', { concurrency: true }, () => {
  const firstHeaders = 'POST /plants HTTP/1.1\r\nHost: a\r\n';
  /** Writes twice a second until the service closes the connection. */
  const drip = (connection: RawConnection, bytes: string): void => {
    const timer = setInterval(() => connection.write(bytes), 500);
    void connection.ended.then(() => clearInterval(timer));
  };

  /** Each begins a request and returns its rest, which is sent after the response. */
  const slowSenders: Record<string, (connection: RawConnection) => string | Buffer | Promise<string>> = {
    'with its first byte': () => '',
    'with its headers': connection => {
      connection.write(firstHeaders);
      return 'Host: a\r\n\r\n';
    },
    'with its headers, though it sends one twice a second': connection => {
      connection.write(firstHeaders);
      drip(connection, 'A: b\r\n');
      return '';
    },
    'with its body': connection => {
      const request = target.request(GHOST_ID);
      connection.write(request.subarray(0, -1));
      return request.subarray(-1);
    },
    'with its body in chunks, though it sends one twice a second': connection => {
      const headers = { 'Content-Length': null, 'Transfer-Encoding': 'chunked' };
      connection.write(target.request(GHOST_ID, { headers, body: '' }));
      drip(connection, '1\r\n \r\n');
      return '';
    },
    'with its body after 100 (Continue)': async connection => {
      const body = plantJson(GHOST_ID);
      const headers = { Expect: '100-continue', 'Content-Length': String(body.length) };
      connection.write(target.request(GHOST_ID, { headers, body: '' }));
      assert.equal((await connection.response()).status, 100);
      return body;
    },
    'with its second request, after the response to the first': async connection => {
      const id = target.nextId();
      connection.write(Buffer.concat([target.request(id), target.request(GHOST_ID).subarray(0, -1)]));
      await assertCreated(connection, id);
      return '}';
    },
  };
  for (const [what, begin] of Object.entries(slowSenders)) {
    test(`${what} gets a 408 response, and later bytes are not stored`, async () => {
      using connection = await target.open();
      const rest = await begin(connection);
      await assertRejected(connection, 40801);
      connection.write(rest);
      await assertClosed(connection);
    });
  }

  test('with a body that was rejected gets one response, and is cut', async () => {
    using connection = await target.open();
    const [headers] = String(requestBytes('a', { body: plantJson(GHOST_ID) })).split('{');
    connection.write(headers!);
    await assertRejected(connection, 40102);
    await assertClosed(connection);
  });

  test('and then resets its connection does no harm', async () => {
    using connection = await target.open();
    await assertRejected(connection, 40801);
    // An error event without a listener would end a service. The test runner only reports it.
    const unhandled: Error[] = [];
    process.on('uncaughtExceptionMonitor', error => unhandled.push(error));
    const closed = new Promise(resolve => serverSideOf(connection)?.on('close', resolve));
    connection.socket.resetAndDestroy();
    await closed;
    assert.deepEqual(unhandled, []);
    using next = await target.open();
    await target.assertOpen(next);
  });

  test('to read a response, but within the timeout, can complete a request that it has begun', async () => {
    using first = await target.open();
    await target.assertOpen(first);
    using connection = await target.open();
    connection.socket.pause();
    const id = target.nextId();
    const request = target.request(id, { body: `{"id":${id},"name":"${'x'.repeat(20_000)}"}` });
    const isUnread = (): boolean => (serverSideOf(connection)?.writableLength ?? 0) > 0;
    let sent = 0;
    await until('a response does not fit the buffers between client and service', async () => {
      for (let count = 0; count < 10 && !isUnread(); count++, sent++) {
        connection.write(request);
        await wait(1);
      }
      return isUnread();
    });
    connection.write(request.subarray(0, 100));
    await wait(PAUSE_MS);
    connection.write(request.subarray(100));
    connection.socket.resume();
    for (let count = 0; count <= sent; count++) assert.equal((await connection.response()).status, 200);
  });

  test('to read the responses before CONNECT is cut', async () => {
    const connection = await target.open();
    connection.socket.pause();
    const pages = Array<string>(400).fill('GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n');
    connection.write([...pages, 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n'].join(''));
    await until('it is accepted', () => serverSideOf(connection) !== undefined);
    const closed = once(serverSideOf(connection)!, 'close', { signal: AbortSignal.timeout(TIMER_MS_MAX) });
    await closed;
    connection[Symbol.dispose]();
  });

  // The shorter requests arrive in at most two chunks, so they stay on the fast path.
  for (const nameLength of [100_000, 10_000]) {
    test(`to read its responses of ${nameLength} bytes is cut, and its requests are no longer read`, async () => {
      const socket = connect({ port: target.service.address.port, host: '127.0.0.1' });
      // Paused from the start, so the client reads nothing.
      socket.pause();
      // A few long responses fill the buffers. Thousands of short ones would delay the other tests.
      const id = target.nextId();
      const block = target.request(id, { body: `{"id":${id},"name":"${'x'.repeat(nameLength)}"}` });
      let acceptedBytes = 0;
      let stalledSince = performance.now();
      const blocks = function* (): Iterable<Buffer> {
        for (; acceptedBytes < OFFERED_BYTES; acceptedBytes += block.length) {
          stalledSince = performance.now();
          yield block;
        }
      };
      await assert.rejects(
        pipeline(blocks, socket, { signal: AbortSignal.timeout(TIMER_MS_MAX) }),
        ({ code }: NodeJS.ErrnoException) => code === 'ECONNRESET' || code === 'EPIPE',
      );
      const stalledMs = performance.now() - stalledSince;
      assert.ok(stalledMs < CUT_WITHIN_MS, `it was cut ${stalledMs} ms after the last block was accepted`);
      assert.ok(acceptedBytes < ACCEPTED_BYTES_MAX, `${acceptedBytes} bytes were accepted`);
    });
  }
});
