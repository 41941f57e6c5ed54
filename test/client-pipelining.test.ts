import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { suite, test } from 'node:test';
import { CONNECTIONS_MAX } from '../src/client/limits.ts';
import { PlantStore, type PlantStoreError } from '../src/client/plant-store.ts';
import { type Arrived, idOf, STORED, store, storedRest, withServer } from './scripted-server.ts';

const ANSWER_WAIT_MS = 30_000;

/** Sends each plant once, and waits for each answer as long as the tests below say. */
function clientOf(url: string): PlantStore {
  return new PlantStore({ url, token: 'plant_test', answerWaitMs: ANSWER_WAIT_MS, retryForMs: 0 });
}

/** What became of a plant: its outcome, or the code of the network's error. */
async function resultOf(client: PlantStore, id: number): Promise<string | undefined> {
  return await client.createPlant({ id, name: `name ${id}` }).then(
    ({ outcome }) => outcome,
    (error: PlantStoreError) => error.code,
  );
}

/** Lets what was written on loopback arrive, without a timer. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise(resolve => setImmediate(resolve));
}

suite('connections that carry many plants', () => {
  test('plants behind an answer that closes the connection are sent again at once', async () => {
    const answers = new Map<number, number>();
    const stored: string[] = [];
    const script = (arrived: Arrived): void => {
      const { connection, requests, socket } = arrived;
      const before = answers.get(connection) ?? 0;
      const count = Math.min(requests.length, 20 - before);
      answers.set(connection, before + count);
      stored.push(...requests.slice(0, count).map(idOf));
      if (before + count < 20) store(arrived, count);
      else {
        store(arrived, count - 1);
        store(arrived, 1, 'Connection: close\r\n');
        socket.end();
      }
    };
    const { results } = await withServer(script, async url => {
      const inputs = Array.from({ length: 2000 }, (_, id) => ({ id, name: `name ${id}` }));
      return { results: await Array.fromAsync(clientOf(url).createPlants(inputs)) };
    });
    // Whoever sends them hears nothing of it.
    assert.ok(results.every(({ plant }) => plant?.outcome === 'created'));
    assert.equal(stored.length, 2000);
    assert.equal(new Set(stored).size, 2000);
  });

  test('of the plants with one id one is on the way, while others overtake it', async () => {
    const sent: string[] = [];
    let most = 0;
    const arrivals = new Set<Arrived>();
    const script = (arrived: Arrived): void => {
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
    };
    await withServer(script, async url => {
      const inputs = Array.from({ length: 300 }, (_, row) => ({
        id: row % 3 ? row + 10 : 7,
        name: `name ${row}`,
      }));
      const results = await Array.fromAsync(clientOf(url).createPlants(inputs));
      assert.ok(results.every(({ error }) => error === undefined));
      return {};
    });
    assert.deepEqual(
      sent.map(request => /name ([0-9]+)/.exec(request)![1]),
      Array.from({ length: 100 }, (_, index) => String(index * 3)),
    );
    assert.ok(most > 8, `${most} at the same time`);
  });

  test('a connection on which nobody waits for an answer any more is cut', { timeout: 10_000 }, async () => {
    const { promise: cut, resolve: onCut } = Promise.withResolvers<void>();
    const waiting = new AbortController();
    const script = ({ socket }: Arrived): void => {
      socket.on('close', () => onCut());
      waiting.abort(new Error('enough'));
    };
    await withServer(script, async url => {
      const sent = clientOf(url).createPlant({ id: 1, name: 'a' }, { signal: waiting.signal });
      await assert.rejects(sent, /enough/);
      await cut;
      return {};
    });
  });

  test('more plants than connections may carry wait for room, and are sent in their order', async () => {
    const sent: number[] = [];
    const script = (arrived: Arrived): void => {
      sent.push(...arrived.requests.map(request => Number(idOf(request))));
      store(arrived, arrived.requests.length);
    };
    const { connections } = await withServer(script, async url => {
      const client = clientOf(url);
      const ids = Array.from({ length: 5000 }, (_, id) => id);
      const results = await Promise.all(ids.map(id => resultOf(client, id)));
      assert.ok(results.every(each => each === 'created'));
      return {};
    });
    assert.equal(sent.length, 5000);
    assert.ok(connections <= CONNECTIONS_MAX, `${connections} connections`);
  });

  test('plants that wait for room where nothing answers wait no longer than for one answer', {
    timeout: 20_000,
  }, async context => {
    context.mock.timers.enable({ apis: ['setTimeout'] });
    const { promise: full, resolve: onFull } = Promise.withResolvers<void>();
    let arrived = 0;
    const script = (): void => {
      if (++arrived === CONNECTIONS_MAX) onFull();
    };
    const { results } = await withServer(script, async url => {
      const client = clientOf(url);
      const results = Promise.all(Array.from({ length: 1000 }, (_, id) => resultOf(client, id)));
      await full;
      context.mock.timers.tick(ANSWER_WAIT_MS);
      return { results: await results.finally(() => client.close()) };
    });
    assert.deepEqual([...new Set(results)], ['ETIMEDOUT']);
  });

  test('plants go on waiting for room as long as any connection brings answers', {
    timeout: 20_000,
  }, async context => {
    context.mock.timers.enable({ apis: ['setTimeout'] });
    const arrivals: Arrived[] = [];
    const script = (arrived: Arrived): void => {
      if (!arrivals.includes(arrived)) arrivals.push(arrived);
    };
    const rounds = 3;
    const { results } = await withServer(script, async url => {
      const client = clientOf(url);
      const ids = Array.from({ length: rounds * CONNECTIONS_MAX }, (_, id) => id);
      const results = Promise.all(ids.map(id => resultOf(client, id)));
      for (let round = 1; round <= rounds; round++) {
        while (arrivals.length < CONNECTIONS_MAX) await turns();
        context.mock.timers.tick(ANSWER_WAIT_MS * 0.6);
        // Each answer closes its connection, so that one of those that wait is sent for it.
        for (const each of arrivals.splice(0)) store(each, 1, 'Connection: close\r\n');
      }
      return { results: await results };
    });
    assert.deepEqual([...new Set(results)], ['created']);
  });
});

suite('a server that answers as no plant store does', () => {
  const forged = `Plant-Id: 2\r\nContent-Length: 17\r\n\r\n{"name":"name 2"}`;
  const SURPLUS: [string, string][] = [
    ['a second answer', `${STORED}${forged}`],
    ['a second answer that closes the connection', `${STORED}Connection: close\r\n${forged}`],
    ['a refusal', 'HTTP/1.1 400 Bad Request\r\nContent-Length: 30\r\n\r\n{"error":40003,"message":"no"}'],
  ];
  for (const [what, surplus] of SURPLUS) {
    test(`${what} is not taken for that to a request that was not written yet`, {
      timeout: 10_000,
    }, async () => {
      const received: string[] = [];
      const script = ({ requests: [request], socket }: Arrived): void => {
        received.push(idOf(request!));
        socket.end(`${STORED}${storedRest(request!)}${surplus}`);
      };
      const { results } = await withServer(script, async url => {
        const client = clientOf(url);
        const first = await resultOf(client, 1);
        return { results: [first, await resultOf(client, 2)] };
      });
      assert.deepEqual(results, ['created', 'created']);
      assert.deepEqual(received, ['1', '2']);
    });
  }

  const DRIPS: [string, string, string][] = [
    ['a body', `HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n`, 'x'],
    ['a run of interim answers', '', 'HTTP/1.1 102 Processing\r\n\r\n'],
  ];
  for (const [what, start, drop] of DRIPS) {
    test(`${what} in drips holds a plant no longer than one answer may take`, {
      timeout: 10_000,
    }, async context => {
      context.mock.timers.enable({ apis: ['setTimeout'] });
      const { promise: arrived, resolve: arrive } = Promise.withResolvers<Socket>();
      const script = ({ socket }: Arrived): void => arrive(socket);
      const { answer } = await withServer(script, async url => {
        const answering = resultOf(clientOf(url), 1);
        const socket = await arrived;
        socket.write(start);
        for (let step = 0; step < 4; step++) {
          socket.write(drop);
          await turns();
          context.mock.timers.tick(ANSWER_WAIT_MS / 4);
        }
        return { answer: await answering };
      });
      assert.equal(answer, 'ETIMEDOUT');
    });
  }

  test('each plant has the whole time for its answer, also behind others', {
    timeout: 10_000,
  }, async context => {
    context.mock.timers.enable({ apis: ['setTimeout'] });
    const arrivals: Arrived[] = [];
    const { results } = await withServer(
      arrived => void arrivals.push(arrived),
      async url => {
        const client = clientOf(url);
        const results: (string | undefined)[] = [];
        for (let id = 1; id <= 4; id++) {
          const answering = resultOf(client, id);
          while (arrivals.length < id) await turns();
          context.mock.timers.tick(ANSWER_WAIT_MS - 1);
          store(arrivals.at(-1)!, 1);
          results.push(await answering);
        }
        return { results };
      },
    );
    assert.deepEqual(results, ['created', 'created', 'created', 'created']);
  });
});
