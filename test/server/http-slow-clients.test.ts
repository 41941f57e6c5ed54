import assert from 'node:assert/strict';
import { once } from 'node:events';
import { suite, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import type { Order } from '../../faults/scenario.ts';
import { slowClients } from '../../faults/slow-clients.ts';
import { BODY_LIMIT_MAX } from '../../src/cli/options/serve-options.ts';
import { RawConnection, requestBytes } from '../harness/raw-connection.ts';
import { startTestService } from '../harness/running-service.ts';
import { responsesIn, scrape } from '../harness/scrape.ts';
import { SEED } from '../harness/seeded-random.ts';
import { serverSideOf } from '../harness/server-side.ts';
import { until } from '../harness/until.ts';
import { assertRejected, ConnectionTarget } from './connection-target.ts';

/** Longer than a slow machine needs to fill the buffers and to cut: an upper limit. */
const TIMER_MAX_MS = 60_000;
/** Longer than the timeout for the rest of a request and one check, far shorter than the cut. */
const PAUSE_MS = 3_500;
const { signal } = new AbortController();
const ORDER: Order = { seed: SEED, budgetMs: 0, signal, tell: console.log, mutant: undefined };
const target = await ConnectionTarget.start();

// Concurrent, since up to 15 s pass in each test.
suite('slow and hostile clients', { concurrency: true }, () => {
  test('a slow request is counted, with or without a first byte, and a reset after it does no harm', async () => {
    using connection = await target.open();
    using half = await target.open();
    half.write('POST /plants HTTP/1.1\r\nHost: a\r\n');
    // An error event without a listener would end a service. The test runner only reports it.
    const unhandled: Error[] = [];
    process.on('uncaughtExceptionMonitor', error => unhandled.push(error));
    await until('it is accepted', () => serverSideOf(connection) !== undefined);
    // Before the response: the service closes the connection some time after it.
    const closed = new Promise(resolve => serverSideOf(connection)!.on('close', resolve));
    await assertRejected(connection, 40801);
    connection.socket.resetAndDestroy();
    await closed;
    assert.deepEqual(unhandled, []);
    await assertRejected(half, 40801);
    assert.equal(responsesIn(await scrape(target.service.opsUrl)).tooSlow, 2);
    using next = await target.open();
    await target.assertOpen(next);
  });

  test('a client that reads slowly, but within the timeout, can complete a request that it has begun', async () => {
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

  test('a client that reads nothing is cut, although it sends a byte again and again', async () => {
    // Far more than the buffers between client and service.
    const name = 'x'.repeat(BODY_LIMIT_MAX - 100);
    await using service = await startTestService({ bodyBytesMax: BODY_LIMIT_MAX });
    using connection = await RawConnection.open(service.address.port);
    connection.socket.pause();
    connection.write(requestBytes(service.token, { body: `{"id":1,"name":"${name}"}` }));
    await until('the response is not taken', () => (serverSideOf(connection)?.writableLength ?? 0) > 0);
    const signal = AbortSignal.timeout(TIMER_MAX_MS);
    const closed = once(serverSideOf(connection)!, 'close', { signal });
    const sending = setInterval(() => connection.write('P'), 1_000);
    await closed.finally(() => clearInterval(sending));
  });

  test('a client that does not read the responses before CONNECT is cut', async () => {
    using connection = await target.open();
    connection.socket.pause();
    const pages = Array<string>(400).fill('GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n');
    connection.write([...pages, 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n'].join(''));
    await until('it is accepted', () => serverSideOf(connection) !== undefined);
    await once(serverSideOf(connection)!, 'close', { signal: AbortSignal.timeout(TIMER_MAX_MS) });
  });

  // A short run of the fault scenario. `npm run faults` also measures the times of responses.
  test('slow clients get a 408 response or are cut, and none of their plants is stored', async () => {
    const { faults } = await slowClients.run({ ...ORDER, roundsMax: 1 });
    assert.deepEqual(faults, []);
  });
});
