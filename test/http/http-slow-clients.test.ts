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

/** The service cuts a stalled reader within 15 s in which nothing moved; a slow machine is given some more. */
const CUT_WITHIN_MS = 20_000;
/** Longer than a slow machine takes until nothing moves, and the time above: only what is never cut fails by it. */
const TIMER_MS_MAX = 60_000;
/** Longer than the service waits for the second piece of a request, with one look more; far shorter than it may cut. */
const PAUSE_MS = 3_500;
/** Far more than the buffers between client and server take. */
const OFFERED_BYTES = 128 * 1024 * 1024;
const TAKEN_BYTES_MAX = OFFERED_BYTES / 4;

let target: ConnectionTarget;

before(async () => {
  target = await ConnectionTarget.start();
});
after(() => target.end());

// Real time passes here, up to 15 s, for all of these at once.
suite('a client that is too slow', { concurrency: true }, () => {
  const head = 'POST /plants HTTP/1.1\r\nHost: a\r\n';
  /** Writes now and then, until the service closes the connection. */
  const drip = (connection: RawConnection, bytes: string): void => {
    const timer = setInterval(() => connection.write(bytes), 500);
    void connection.ended.then(() => clearInterval(timer));
  };

  /** What each begins to send, and what it sends of it when it was answered: nothing of it is stored. */
  const slowSenders: Record<string, (connection: RawConnection) => string | Buffer | Promise<string>> = {
    'with its first byte': () => '',
    'with its headers': connection => {
      connection.write(head);
      return 'Host: a\r\n\r\n';
    },
    'with its headers, though it sends one now and then': connection => {
      connection.write(head);
      drip(connection, 'A: b\r\n');
      return '';
    },
    'with its body': connection => {
      const request = target.request(GHOST_ID);
      connection.write(request.subarray(0, -1));
      return request.subarray(-1);
    },
    'with its body in chunks, though a chunk comes now and then': connection => {
      const headers = { 'Content-Length': null, 'Transfer-Encoding': 'chunked' };
      connection.write(target.request(GHOST_ID, { headers, body: '' }));
      drip(connection, '1\r\n \r\n');
      return '';
    },
    'with the body it was asked for by 100': async connection => {
      const body = plantJson(GHOST_ID);
      const headers = { Expect: '100-continue', 'Content-Length': String(body.length) };
      connection.write(target.request(GHOST_ID, { headers, body: '' }));
      assert.equal((await connection.response()).status, 100);
      return body;
    },
    'with its second request, but gets the answer to the first at once': async connection => {
      const id = target.nextId();
      connection.write(Buffer.concat([target.request(id), target.request(GHOST_ID).subarray(0, -1)]));
      await assertCreated(connection, id);
      return '}';
    },
  };
  for (const [what, begin] of Object.entries(slowSenders)) {
    test(`${what} is answered 408, and what comes then is not stored`, async () => {
      using connection = await target.open();
      const rest = await begin(connection);
      await assertRejected(connection, 40801);
      connection.write(rest);
      await assertClosed(connection);
    });
  }

  test('with a body that was refused gets its one answer, and is cut', async () => {
    using connection = await target.open();
    const [head] = String(requestBytes('a', { body: plantJson(GHOST_ID) })).split('{');
    connection.write(head!);
    await assertRejected(connection, 40102);
    await assertClosed(connection);
  });

  test('at all, and then resets its connection, harms nobody', async () => {
    using connection = await target.open();
    await assertRejected(connection, 40801);
    // An error event that nobody hears ends a service, and is only noted by the runner of these tests.
    const unheard: Error[] = [];
    process.on('uncaughtExceptionMonitor', error => unheard.push(error));
    const closed = new Promise(resolve => serverSideOf(connection)?.on('close', resolve));
    connection.socket.resetAndDestroy();
    await closed;
    assert.deepEqual(unheard, []);
    using next = await target.open();
    await target.assertOpen(next);
  });

  test('to read an answer, for less than it may, can go on with a request that it began meanwhile', async () => {
    using first = await target.open();
    await target.assertOpen(first);
    using connection = await target.open();
    connection.socket.pause();
    const id = target.nextId();
    const request = target.request(id, { body: `{"id":${id},"name":"${'x'.repeat(20_000)}"}` });
    const isUnread = (): boolean => (serverSideOf(connection)?.writableLength ?? 0) > 0;
    let sent = 0;
    await until('an answer does not fit the buffers between client and service', async () => {
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

  test('to read the answers in front of CONNECT is cut', async () => {
    const connection = await target.open();
    connection.socket.pause();
    const pages = Array<string>(400).fill('GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n');
    connection.write([...pages, 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n'].join(''));
    await until('it is taken', () => serverSideOf(connection) !== undefined);
    const closed = once(serverSideOf(connection)!, 'close', { signal: AbortSignal.timeout(TIMER_MS_MAX) });
    await closed;
    connection[Symbol.dispose]();
  });

  // The shorter ones arrive in two pieces at most, which is another way through the service.
  for (const nameLength of [100_000, 10_000]) {
    test(`to read its answers of ${nameLength} bytes is read from no further, and cut`, async () => {
      const socket = connect({ port: target.service.address.port, host: '127.0.0.1' });
      // Paused from the start, so nothing is ever read.
      socket.pause();
      // Long answers, for a few of them fill the buffers; with thousands of short ones all others here would have to wait.
      const id = target.nextId();
      const block = target.request(id, { body: `{"id":${id},"name":"${'x'.repeat(nameLength)}"}` });
      let takenBytes = 0;
      let stalledSince = performance.now();
      const blocks = function* (): Iterable<Buffer> {
        for (; takenBytes < OFFERED_BYTES; takenBytes += block.length) {
          stalledSince = performance.now();
          yield block;
        }
      };
      await assert.rejects(
        pipeline(blocks, socket, { signal: AbortSignal.timeout(TIMER_MS_MAX) }),
        ({ code }: NodeJS.ErrnoException) => code === 'ECONNRESET' || code === 'EPIPE',
      );
      const stalledMs = performance.now() - stalledSince;
      assert.ok(stalledMs < CUT_WITHIN_MS, `it was cut ${stalledMs} ms after the last block was taken`);
      assert.ok(takenBytes < TAKEN_BYTES_MAX, `${takenBytes} bytes were taken`);
    });
  }
});
