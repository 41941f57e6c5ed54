import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { suite, type TestContext, test } from 'node:test';
import { CONNECTIONS_MAX, INTERIM_RESPONSES_MAX, PIPELINE_MAX } from '../../../src/client/limits.ts';
import { PlantStore, type PlantStoreError } from '../../../src/client/plant-store.ts';
import { until } from '../../harness/until.ts';
import { type Arrived, idOf, STORED, startScripted, store, storedRest } from './scripted-server.ts';

const RESPONSE_TIMEOUT_MS = 30_000;
/** Bytes of one read on loopback. */
const READ_BYTES = 65_536;

/** Sends each plant once by default. */
function clientOf(url: string, retryForMs = 0): PlantStore {
  return new PlantStore({ url, token: 'plant_test', responseTimeoutMs: RESPONSE_TIMEOUT_MS, retryForMs });
}

/** The outcome of a plant, the code of the network error, or status and message of the response. */
async function resultOf(client: PlantStore, id: number): Promise<string> {
  return await client.createPlant({ id, name: `name ${id}` }).then(
    ({ outcome }) => outcome,
    ({ code, status, message }: PlantStoreError) => code ?? `${status} ${message}`,
  );
}

function plants(count: number): { id: number; name: string }[] {
  return Array.from({ length: count }, (_, id) => ({ id, name: `name ${id}` }));
}

/** Waits without a timer until data on loopback has arrived. */
async function settle(): Promise<void> {
  for (let tick = 0; tick < 20; tick++) await new Promise(resolve => setImmediate(resolve));
}

function headers(fields: string, status = 400): string {
  return `HTTP/1.1 ${status} Bad\r\n${fields}\r\n\r\n`;
}

suite('a response on a connection', { concurrency: 4 }, () => {
  const BODY = '{"error":40003,"message":"\xc3\xa9\xf0\x9f\x8c\xb1"}';
  const LENGTH = `Content-Length: ${BODY.length}`;
  const CHUNKS = `5;x=y\r\n${BODY.slice(0, 5)}\r\n${(BODY.length - 5).toString(16)}\r\n${BODY.slice(5)}\r\n0\r\n`;
  const PARSED = '400 é🌱';
  const FOREIGN = 'a plant store does not send this; check the address';
  const INTERIM = 'HTTP/1.1 100\r\n\r\n';
  const READ: [what: string, response: string, result: string, persists: boolean][] = [
    ['with a length', `${headers(`A: b\r\n${LENGTH}`)}${BODY}`, PARSED, true],
    [
      'with white space around the length',
      `${headers(`content-length:\t ${BODY.length} \t`)}${BODY}`,
      PARSED,
      true,
    ],
    [
      'with much white space in a value',
      `${headers(`A: a${' '.repeat(9_000)}b\r\n${LENGTH}`)}${BODY}`,
      PARSED,
      true,
    ],
    ['in chunks', `${headers('Transfer-Encoding: Chunked')}${CHUNKS}\r\n`, PARSED, true],
    [
      'in chunks with a trailer',
      `${headers('Transfer-Encoding: chunked')}${CHUNKS}B: c\r\n\r\n`,
      PARSED,
      true,
    ],
    [
      'without a reason phrase',
      'HTTP/1.1 503\r\ncontent-length:0\r\n\r\n',
      `503 the response is 503; ${FOREIGN}`,
      true,
    ],
    ['without a body', headers('A: b', 204), `204 the response is 204; ${FOREIGN}`, true],
    [
      'after interim responses',
      `${INTERIM.repeat(INTERIM_RESPONSES_MAX)}${headers(LENGTH)}${BODY}`,
      PARSED,
      true,
    ],
    [
      'with Connection: close',
      `${headers(`Connection: x\r\nConnection: Close\r\n${LENGTH}`)}${BODY}`,
      PARSED,
      false,
    ],
    ['of HTTP/1.0', `HTTP/1.0 400 Bad\r\n${LENGTH}\r\n\r\n${BODY}`, PARSED, false],
    ['without a length', `${headers('A: b')}${BODY}`, PARSED, false],
    [
      'with an endless body',
      `${headers('Content-Length: 999999999')}${'x'.repeat(READ_BYTES + 2_000)}`,
      `400 the response is 400; ${FOREIGN}`,
      false,
    ],
  ];
  for (const [what, response, expected, persists] of READ) {
    for (const size of response.length < 1_000 ? [READ_BYTES, 1] : [READ_BYTES]) {
      test(`${what}, in chunks of ${size} bytes, is parsed, and the connection ${persists ? 'stays open' : 'closes'}`, async () => {
        const script = async ({ requests, socket }: Arrived): Promise<void> => {
          requests.shift();
          for (let start = 0; start < response.length; start += size) {
            socket.write(response.slice(start, start + size), 'latin1');
            await new Promise(setImmediate);
          }
          if (what === 'without a length') socket.end();
        };
        await using server = await startScripted(arrived => void script(arrived));
        const client = clientOf(server.url);
        for (const id of [1, 2]) assert.equal(await resultOf(client, id), expected);
        assert.equal(server.connections(), persists ? 1 : 2);
      });
    }
  }

  const MALFORMED: [string, string][] = [
    ['of another protocol', 'SSH-2.0\r\n\r\n'],
    ['of HTTP/2', 'HTTP/2 200\r\n\r\n'],
    ['that changes the protocol', 'HTTP/1.1 101 Switching Protocols\r\n\r\n'],
    ['with two lengths', headers('Content-Length: 1\r\nContent-Length: 1')],
    ['with an invalid length', headers('Content-Length: -1')],
    ['with a length and chunks', headers('Content-Length: 1\r\nTransfer-Encoding: chunked')],
    ['with an unknown transfer coding', headers('Transfer-Encoding: gzip, chunked')],
    ['with a folded line', headers('A: b\r\n c: d')],
    ['with a line without a colon', headers('A b')],
    ['with a bare line feed', headers('A: b\nC: d')],
    ['with a bare carriage return', headers('A: b\rC: d')],
    ['with a NUL in a value', headers('A: b\0')],
    ['with an invalid chunk size', `${headers('Transfer-Encoding: chunked')}x\r\n`],
    ['with a chunk longer than its size', `${headers('Transfer-Encoding: chunked')}1\r\nabcd\r\n`],
    ['with an endless header section', `HTTP/1.1 200 OK\r\n${'A: b\r\n'.repeat(READ_BYTES / 4)}`],
    ['after too many interim responses', INTERIM.repeat(INTERIM_RESPONSES_MAX + 1)],
    ['after endless interim responses', `HTTP/1.1 102 ${'x'.repeat(READ_BYTES / 4)}\r\n\r\n`.repeat(5)],
  ];
  for (const [what, response] of MALFORMED) {
    test(`${what} is rejected as not HTTP`, async () => {
      await using server = await startScripted(({ socket }) => void socket.write(response, 'latin1'));
      assert.equal(await resultOf(clientOf(server.url), 1), 'EPROTO');
    });
  }

  const forged = 'Plant-Id: 2\r\nContent-Length: 17\r\n\r\n{"name":"name 2"}';
  const SURPLUS: [string, string][] = [
    ['a second response', `${STORED}${forged}`],
    ['a second response that closes the connection', `${STORED}Connection: close\r\n${forged}`],
    ['a rejection', `${headers(LENGTH)}${BODY}`],
  ];
  for (const [what, surplus] of SURPLUS) {
    for (const position of ['together with', 'right after']) {
      test(`${what} ${position} the first response is not matched to an unwritten request`, async () => {
        const received: string[] = [];
        const script = ({ requests: [request], socket }: Arrived): void => {
          received.push(idOf(request!));
          const first = (padding: string): string => `${STORED}A: ${padding}\r\n${storedRest(request!)}`;
          // Fills one read, so that the rest arrives in the next read of the same event-loop
          // iteration.
          const length = position === 'together with' ? 0 : READ_BYTES - first('').length;
          socket.end(`${first('x'.repeat(length))}${surplus}`, 'latin1');
        };
        await using server = await startScripted(script);
        const client = clientOf(server.url, 5_000);
        for (const id of [1, 2]) assert.equal(await resultOf(client, id), 'created');
        assert.deepEqual(received, ['1', '2']);
      });
    }
  }
});

suite('pipelined connections', () => {
  /** Sends 1000 plants, and asserts that each is stored and none fails. */
  async function sendMany(url: string, stored: string[], retryForMs: number): Promise<void> {
    const results = await Array.fromAsync(clientOf(url, retryForMs).createPlants(plants(1000)));
    assert.ok(results.every(({ plant }) => plant?.outcome === 'created'));
    assert.equal(new Set(stored).size, 1000);
  }

  test('carry one request until the first response, and then many; others are queued', async () => {
    const sent: string[] = [];
    const responded = new Set<number>();
    let most = 0;
    await using server = await startScripted(arrived => {
      const { connection, requests } = arrived;
      sent.push(...requests.map(idOf));
      if (!responded.has(connection)) assert.equal(requests.length, 1);
      responded.add(connection);
      most = Math.max(most, requests.length);
      store(arrived, requests.length);
    });
    const client = clientOf(server.url);
    const results = await Promise.all(plants(5000).map(({ id }) => resultOf(client, id)));
    assert.ok(results.every(each => each === 'created'));
    assert.deepEqual([sent.length, new Set(sent).size], [5000, 5000]);
    assert.deepEqual([server.connections(), most], [CONNECTIONS_MAX, PIPELINE_MAX]);
  });

  for (const count of [1, 20]) {
    test(`requests behind a response that closes the connection (number ${count}) are sent on another one`, async () => {
      const left = new Map<number, number>();
      const stored: string[] = [];
      await using server = await startScripted(arrived => {
        const { connection, requests, socket } = arrived;
        const leftBefore = left.get(connection) ?? count;
        const now = Math.min(requests.length, leftBefore);
        left.set(connection, leftBefore - now);
        stored.push(...requests.slice(0, now).map(idOf));
        if (now < leftBefore) store(arrived, now);
        else {
          store(arrived, now - 1);
          store(arrived, 1, 'Connection: close\r\n');
          socket.end();
        }
      });
      await sendMany(server.url, stored, 0);
      assert.equal(stored.length, 1000);
      if (count === 1) assert.equal(server.connections(), 1000);
    });
  }

  test('requests behind a truncated response are retried', async () => {
    const stored: string[] = [];
    let chunks = 0;
    await using server = await startScripted(arrived => {
      const { requests, socket } = arrived;
      const isCut = ++chunks % 17 === 0;
      const count = isCut ? 1 : requests.length;
      stored.push(...requests.slice(0, count).map(idOf));
      store(arrived, count);
      if (isCut) socket.end(`${STORED}Plant-I`);
    });
    await sendMany(server.url, stored, 30_000);
  });

  test('carry one plant of an id at a time, while plants with other ids overtake it', async () => {
    const sent: string[] = [];
    let most = 0;
    const arrivals = new Set<Arrived>();
    await using server = await startScripted(arrived => {
      arrivals.add(arrived);
      // Delayed until concurrent requests have arrived. The last one gets the first response.
      setTimeout(() => {
        const waiting = [...arrivals].flatMap(({ requests }) => requests).map(idOf);
        assert.ok(waiting.filter(id => id === '7').length <= 1, waiting.join());
        most = Math.max(most, waiting.length);
        for (const each of [...arrivals].reverse()) {
          sent.push(...each.requests.filter(request => idOf(request) === '7'));
          store(each, each.requests.length);
        }
      }, 5);
    });
    const inputs = plants(300).map(({ id, name }) => ({ id: id % 3 ? id + 10 : 7, name }));
    const results = await Array.fromAsync(clientOf(server.url).createPlants(inputs));
    assert.ok(results.every(({ error }) => error === undefined));
    assert.deepEqual(
      sent.map(request => /name ([0-9]+)/.exec(request)![1]),
      Array.from({ length: 100 }, (_, index) => String(index * 3)),
    );
    assert.ok(most > 8, `${most} at the same time`);
  });

  test('close when all their requests are abandoned', { timeout: 10_000 }, async () => {
    const { promise: cut, resolve: onCut } = Promise.withResolvers<void>();
    const waiting = new AbortController();
    await using server = await startScripted(({ socket }) => {
      socket.on('close', () => onCut());
      waiting.abort(new Error('enough'));
    });
    const sent = clientOf(server.url).createPlant({ id: 1, name: 'a' }, { signal: waiting.signal });
    await assert.rejects(sent, /enough/);
    await cut;
  });
});

suite('the response timeout', { timeout: 60_000 }, () => {
  function stopClock(context: TestContext): (ms: number) => void {
    context.mock.timers.enable({ apis: ['setTimeout'] });
    return ms => context.mock.timers.tick(ms);
  }

  test('also ends queued requests when no connection gets a response', async context => {
    const pass = stopClock(context);
    let arrived = 0;
    await using server = await startScripted(() => void arrived++);
    const client = clientOf(server.url);
    const results = Promise.all(plants(1000).map(({ id }) => resultOf(client, id)));
    while (arrived < CONNECTIONS_MAX) await settle();
    pass(RESPONSE_TIMEOUT_MS);
    assert.deepEqual([...new Set(await results)], ['ETIMEDOUT']);
  });

  test('starts again for queued requests at each response on any connection', async context => {
    const pass = stopClock(context);
    const arrivals = new Set<Arrived>();
    await using server = await startScripted(arrived => void arrivals.add(arrived));
    const client = clientOf(server.url);
    const results = Promise.all(plants(3 * CONNECTIONS_MAX).map(({ id }) => resultOf(client, id)));
    for (let round = 1; round <= 3; round++) {
      while (arrivals.size < CONNECTIONS_MAX) await settle();
      pass(RESPONSE_TIMEOUT_MS * 0.6);
      // Each response closes its connection, so that a queued request is sent on a new one.
      for (const each of arrivals) store(each, 1, 'Connection: close\r\n');
      arrivals.clear();
    }
    assert.deepEqual([...new Set(await results)], ['created']);
  });

  const SLOW: [string, string, string][] = [
    ['a body', headers('Content-Length: 9999', 200), 'x'],
    ['many interim responses', '', 'HTTP/1.1 102 Processing\r\n\r\n'],
  ];
  for (const [what, start, chunk] of SLOW) {
    test(`is not extended by ${what} that arrives slowly`, async context => {
      const pass = stopClock(context);
      const { promise: arrived, resolve: arrive } = Promise.withResolvers<Socket>();
      await using server = await startScripted(({ socket }) => arrive(socket));
      const result = resultOf(clientOf(server.url), 1);
      const socket = await arrived;
      socket.write(start);
      for (let step = 0; step < 4; step++) {
        socket.write(chunk);
        await settle();
        pass(RESPONSE_TIMEOUT_MS / 4);
      }
      assert.equal(await result, 'ETIMEDOUT');
    });
  }

  test('is full for each plant, also after other plants on the same connection', async context => {
    const pass = stopClock(context);
    const arrivals: Arrived[] = [];
    await using server = await startScripted(arrived => void arrivals.push(arrived));
    const client = clientOf(server.url);
    for (let id = 1; id <= 4; id++) {
      const result = resultOf(client, id);
      await until('the plant has arrived', () => arrivals.length >= id);
      pass(RESPONSE_TIMEOUT_MS - 1);
      store(arrivals.at(-1)!, 1);
      assert.equal(await result, 'created');
    }
  });
});
