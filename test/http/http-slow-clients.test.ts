import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, suite, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { serverSideOf } from '../harness/server-side.ts';
import { until } from '../harness/until.ts';
import { assertRejected, ConnectionTarget } from './connection-target.ts';

/** Longer than a slow machine needs to fill the buffers and to cut: an upper limit. */
const TIMER_MS_MAX = 60_000;
/** Longer than the timeout for the rest of a request and one check, far shorter than the cut. */
const PAUSE_MS = 3_500;
let target: ConnectionTarget;

before(async () => {
  target = await ConnectionTarget.start();
});
after(() => target.end());

// The scenario `slow-clients` has the others. Concurrent, since up to 15 s pass in each test.
suite('a client that is too slow', { concurrency: true }, () => {
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
});
