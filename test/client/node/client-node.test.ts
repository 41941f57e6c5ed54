import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { suite, type TestContext, test } from 'node:test';
import { CONNECTIONS_MAX, INTERIM_RESPONSES_MAX, PIPELINE_MAX } from '../../../src/client/limits.ts';
import { PlantStore, type PlantStoreError } from '../../../src/client/plant-store.ts';
import { until } from '../../harness/until.ts';
import { type Arrived, idOf, STORED, startScripted, store, storedRest } from './scripted-server.ts';

const RESPONSE_TIMEOUT_MS = 30_000;
/** A loopback read brings so much at a time. */
const READ_BYTES = 65_536;

/** Sends each plant once, and waits for each answer as long as the tests below say. */
function clientOf(url: string, retryForMs = 0): PlantStore {
  return new PlantStore({ url, token: 'plant_test', responseTimeoutMs: RESPONSE_TIMEOUT_MS, retryForMs });
}

/** What became of a plant: its outcome, or the code of the network's error, or what was answered. */
async function resultOf(client: PlantStore, id: number): Promise<string> {
  return await client.createPlant({ id, name: `name ${id}` }).then(
    ({ outcome }) => outcome,
    ({ code, status, message }: PlantStoreError) => code ?? `${status} ${message}`,
  );
}

function plants(count: number): { id: number; name: string }[] {
  return Array.from({ length: count }, (_, id) => ({ id, name: `name ${id}` }));
}

/** Lets what was written on loopback arrive, without a timer. */
async function budget(): Promise<void> {
  for (let tick = 0; tick < 20; tick++) await new Promise(resolve => setImmediate(resolve));
}

function head(fields: string, status = 400): string {
  return `HTTP/1.1 ${status} Bad\r\n${fields}\r\n\r\n`;
}

suite('an answer on a connection', { concurrency: 4 }, () => {
  const BODY = '{"error":40003,"message":"\xc3\xa9\xf0\x9f\x8c\xb1"}';
  const LENGTH = `Content-Length: ${BODY.length}`;
  const CHUNKS = `5;x=y\r\n${BODY.slice(0, 5)}\r\n${(BODY.length - 5).toString(16)}\r\n${BODY.slice(5)}\r\n0\r\n`;
  const SAID = '400 é🌱';
  const FOREIGN = 'which no plant store gives here; check the address';
  const INTERIM = 'HTTP/1.1 100\r\n\r\n';
  const READ: [what: string, response: string, result: string, lasts: boolean][] = [
    ['with a length', `${head(`A: b\r\n${LENGTH}`)}${BODY}`, SAID, true],
    ['with blanks around the length', `${head(`content-length:\t ${BODY.length} \t`)}${BODY}`, SAID, true],
    ['with many blanks in a value', `${head(`A: a${' '.repeat(9_000)}b\r\n${LENGTH}`)}${BODY}`, SAID, true],
    ['in chunks', `${head('Transfer-Encoding: Chunked')}${CHUNKS}\r\n`, SAID, true],
    ['in chunks with a trailer', `${head('Transfer-Encoding: chunked')}${CHUNKS}B: c\r\n\r\n`, SAID, true],
    ['with no reason', 'HTTP/1.1 503\r\ncontent-length:0\r\n\r\n', `503 the answer is 503, ${FOREIGN}`, true],
    ['with no body', head('A: b', 204), `204 the answer is 204, ${FOREIGN}`, true],
    ['behind interim ones', `${INTERIM.repeat(INTERIM_RESPONSES_MAX)}${head(LENGTH)}${BODY}`, SAID, true],
    ['that closes', `${head(`Connection: x\r\nConnection: Close\r\n${LENGTH}`)}${BODY}`, SAID, false],
    ['of HTTP/1.0', `HTTP/1.0 400 Bad\r\n${LENGTH}\r\n\r\n${BODY}`, SAID, false],
    ['without a length', `${head('A: b')}${BODY}`, SAID, false],
    [
      'that goes on and on',
      `${head('Content-Length: 999999999')}${'x'.repeat(READ_BYTES + 2_000)}`,
      `400 the answer is 400, ${FOREIGN}`,
      false,
    ],
  ];
  for (const [what, response, expected, lasts] of READ) {
    for (const size of response.length < 1_000 ? [READ_BYTES, 1] : [READ_BYTES]) {
      test(`${what}, in pieces of ${size} bytes, is read, and the connection ${lasts ? 'lasts' : 'ends'}`, async () => {
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
        assert.equal(server.connections(), lasts ? 1 : 2);
      });
    }
  }

  const MALFORMED: [string, string][] = [
    ['of another protocol', 'SSH-2.0\r\n\r\n'],
    ['of HTTP/2', 'HTTP/2 200\r\n\r\n'],
    ['that changes the protocol', 'HTTP/1.1 101 Switching Protocols\r\n\r\n'],
    ['with two lengths', head('Content-Length: 1\r\nContent-Length: 1')],
    ['with a length that is none', head('Content-Length: -1')],
    ['with a length and chunks', head('Content-Length: 1\r\nTransfer-Encoding: chunked')],
    ['with an unknown coding', head('Transfer-Encoding: gzip, chunked')],
    ['with a folded line', head('A: b\r\n c: d')],
    ['with a line without a colon', head('A b')],
    ['with a bare line feed', head('A: b\nC: d')],
    ['with a bare carriage return', head('A: b\rC: d')],
    ['with a NUL in a value', head('A: b\0')],
    ['with a size of a chunk that is none', `${head('Transfer-Encoding: chunked')}x\r\n`],
    ['with a chunk longer than it says', `${head('Transfer-Encoding: chunked')}1\r\nabcd\r\n`],
    ['with an endless head', `HTTP/1.1 200 OK\r\n${'A: b\r\n'.repeat(READ_BYTES / 4)}`],
    ['behind too many interim ones', INTERIM.repeat(INTERIM_RESPONSES_MAX + 1)],
    ['behind endless interim ones', `HTTP/1.1 102 ${'x'.repeat(READ_BYTES / 4)}\r\n\r\n`.repeat(5)],
  ];
  for (const [what, response] of MALFORMED) {
    test(`${what} is no answer`, async () => {
      await using server = await startScripted(({ socket }) => void socket.write(response, 'latin1'));
      assert.equal(await resultOf(clientOf(server.url), 1), 'EPROTO');
    });
  }

  const forged = 'Plant-Id: 2\r\nContent-Length: 17\r\n\r\n{"name":"name 2"}';
  const SURPLUS: [string, string][] = [
    ['a second answer', `${STORED}${forged}`],
    ['a second answer that closes the connection', `${STORED}Connection: close\r\n${forged}`],
    ['a rejection', `${head(LENGTH)}${BODY}`],
  ];
  for (const [what, surplus] of SURPLUS) {
    for (const comes of ['with', 'right behind']) {
      test(`${what} ${comes} the first is not taken for that to a request that was not written yet`, async () => {
        const received: string[] = [];
        const script = ({ requests: [request], socket }: Arrived): void => {
          received.push(idOf(request!));
          const first = (padding: string): string => `${STORED}A: ${padding}\r\n${storedRest(request!)}`;
          // A whole read, so that the rest comes in the next one, before the event loop goes on.
          const length = comes === 'with' ? 0 : READ_BYTES - first('').length;
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

suite('connections that carry many plants', () => {
  /** Sends plants, each of which is stored, and whoever sends them hears of no failure. */
  async function sendMany(url: string, stored: string[], retryForMs: number): Promise<void> {
    const results = await Array.fromAsync(clientOf(url, retryForMs).createPlants(plants(1000)));
    assert.ok(results.every(({ plant }) => plant?.outcome === 'created'));
    assert.equal(new Set(stored).size, 1000);
  }

  test('carry one until they have answered, and then many; what has no room waits', async () => {
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
    test(`plants behind a response that closes the connection, the ${count}th, are sent again at once`, async () => {
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

  test('plants behind a response that is cut are tried again', async () => {
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

  test('of the plants with one id one is in flight, while others overtake it', async () => {
    const sent: string[] = [];
    let most = 0;
    const arrivals = new Set<Arrived>();
    await using server = await startScripted(arrived => {
      arrivals.add(arrived);
      // Later, so that whatever is sent with it has arrived, and the last that came is answered first.
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

  test('one on which nobody waits for a response any more is cut', { timeout: 10_000 }, async () => {
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

suite('the time for a response', { timeout: 60_000 }, () => {
  function stopClock(context: TestContext): (ms: number) => void {
    context.mock.timers.enable({ apis: ['setTimeout'] });
    return ms => context.mock.timers.tick(ms);
  }

  test('is also that of plants which wait for room where nothing answers', async context => {
    const pass = stopClock(context);
    let arrived = 0;
    await using server = await startScripted(() => void arrived++);
    const client = clientOf(server.url);
    const results = Promise.all(plants(1000).map(({ id }) => resultOf(client, id)));
    while (arrived < CONNECTIONS_MAX) await budget();
    pass(RESPONSE_TIMEOUT_MS);
    assert.deepEqual([...new Set(await results)], ['ETIMEDOUT']);
  });

  test('begins anew for plants that wait for room as long as any connection brings responses', async context => {
    const pass = stopClock(context);
    const arrivals = new Set<Arrived>();
    await using server = await startScripted(arrived => void arrivals.add(arrived));
    const client = clientOf(server.url);
    const results = Promise.all(plants(3 * CONNECTIONS_MAX).map(({ id }) => resultOf(client, id)));
    for (let round = 1; round <= 3; round++) {
      while (arrivals.size < CONNECTIONS_MAX) await budget();
      pass(RESPONSE_TIMEOUT_MS * 0.6);
      // Each response closes its connection, so that one of those that wait is sent for it.
      for (const each of arrivals) store(each, 1, 'Connection: close\r\n');
      arrivals.clear();
    }
    assert.deepEqual([...new Set(await results)], ['created']);
  });

  const DRIPS: [string, string, string][] = [
    ['a body', head('Content-Length: 9999', 200), 'x'],
    ['a run of interim responses', '', 'HTTP/1.1 102 Processing\r\n\r\n'],
  ];
  for (const [what, start, drop] of DRIPS) {
    test(`is not longer for ${what} in drips`, async context => {
      const pass = stopClock(context);
      const { promise: arrived, resolve: arrive } = Promise.withResolvers<Socket>();
      await using server = await startScripted(({ socket }) => arrive(socket));
      const result = resultOf(clientOf(server.url), 1);
      const socket = await arrived;
      socket.write(start);
      for (let step = 0; step < 4; step++) {
        socket.write(drop);
        await budget();
        pass(RESPONSE_TIMEOUT_MS / 4);
      }
      assert.equal(await result, 'ETIMEDOUT');
    });
  }

  test('is whole for each plant, also behind others', async context => {
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
