import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { suite, test } from 'node:test';
import { promisify } from 'node:util';
import fc from 'fast-check';
import { type PlantInput, PlantStore, PlantStoreError } from '../src/client/plant-store.ts';
import { ERRORS } from '../src/contract/errors.ts';
import type { NewPlant } from '../src/contract/plant.ts';
import { openReader } from '../src/store/open-store.ts';
import { differencesInExport, wholeRangePlants } from './harness/whole-range-plants.ts';
import { listen } from './loopback-server.ts';
import { startTestService } from './running-service.ts';

const MONSTERA = { id: 9007199254740993n, name: 'Monstera deliciosa', tag: 'houseplant' };
const MONSTERA_JSON = '{"name":"Monstera deliciosa","tag":"houseplant"}';
const STORED_HEADERS = { 'Plant-Id': '9007199254740993', 'Plant-Revision': '1', 'Plant-Outcome': 'created' };

/** A server that answers as a test wants; a plant store does not answer 500 or badly when asked to. */
async function startServer(
  answer: (request: IncomingMessage, response: ServerResponse, count: number) => void,
): Promise<{ url: string; count: () => number } & AsyncDisposable> {
  let count = 0;
  const server = createServer((request, response) => {
    request.resume().on('end', () => answer(request, response, ++count));
  });
  return Object.assign(await listen(server), { count: () => count });
}

async function thrownBy(run: () => Promise<unknown>): Promise<PlantStoreError> {
  try {
    await run();
  } catch (error) {
    assert.ok(error instanceof PlantStoreError, String(error));
    return error;
  }
  throw new Error('nothing was thrown');
}

/** What is stored, in the order of ids. */
async function plantsOf(database: string): Promise<NewPlant[]> {
  const reader = await openReader(database);
  const plants = await Array.fromAsync(reader.revisions(), ({ plant }) => plant);
  await reader.close();
  return plants;
}

suite('the client sends a plant', () => {
  test('and says what was stored, digit for digit', async () => {
    await using service = await startTestService();
    const store = new PlantStore(service);
    assert.deepEqual(await store.createPlant(MONSTERA), { ...MONSTERA, revision: 1, outcome: 'created' });
    assert.deepEqual(await store.createPlant(MONSTERA), { ...MONSTERA, revision: 1, outcome: 'unchanged' });
    const { id } = MONSTERA;
    const renamed = { id, name: 'Monstera', revision: 2, outcome: 'revised' };
    assert.deepEqual(await store.createPlant({ id, name: 'Monstera' }), renamed);
  });

  test('with its id as a bigint, a number or text', async () => {
    await using service = await startTestService();
    const store = new PlantStore({ url: `${service.url}/`, token: service.token });
    const ids: [PlantInput['id'], bigint][] = [
      [-(2n ** 63n), -(2n ** 63n)],
      ['9223372036854775807', 2n ** 63n - 1n],
      [2 ** 53 - 1, 2n ** 53n - 1n],
      ['-7', -7n],
      [0, 0n],
    ];
    for (const [given, id] of ids)
      assert.equal((await store.createPlant({ id: given, name: '', tag: '' })).id, id);
    assert.deepEqual(
      (await plantsOf(service.database)).map(({ id }) => id),
      ids.map(([, id]) => id).sort((a, b) => (a < b ? -1 : 1)),
    );
  });

  test('and refuses by itself what the service would refuse for its shape, naming each field', async () => {
    await using server = await startServer((_request, response) => response.end());
    const store = new PlantStore({ url: server.url, token: 'token' });
    const faults: [unknown, RegExp][] = [
      [{ name: 'a' }, /^id is required$/],
      [{ id: 2 ** 53, name: 'a' }, /^id is a number that may have lost digits/],
      [{ id: 1.5, name: 'a' }, /^id must be an integer from -9223372036854775808/],
      [{ id: Number.NaN, name: 'a' }, /^id must be/],
      [{ id: 2n ** 63n, name: 'a' }, /^id must be/],
      [{ id: '1e3', name: 'a' }, /^id must be/],
      [{ id: '', name: 'a' }, /^id must be/],
      [{ id: null, name: 'a' }, /^id must be/],
      [{ id: 1n }, /^name is required$/],
      [{ id: 1n, name: 5 }, /^name must be a string$/],
      [{ id: 1n, name: '\ud800' }, /^name must not contain an unpaired surrogate$/],
      [{ id: 1n, name: 'a', tag: null }, /^tag must be a string$/],
      [
        { id: 'x', name: '\0', tag: 1 },
        /^id must be .*; name must not contain U\+0000; tag must be a string$/,
      ],
    ];
    for (const [input, message] of faults) {
      const error = await thrownBy(() => store.createPlant(input as PlantInput));
      assert.match(error.message, message);
      assert.deepEqual([error.error, error.status, error.canRetry], [40002, undefined, false]);
    }
    assert.equal(server.count(), 0);
  });

  test('and throws what the service answers, with its number', async () => {
    await using service = await startTestService({ repeatedIdRule: 'reject' });
    const store = new PlantStore(service);
    await store.createPlant(MONSTERA);
    const taken = await thrownBy(() => store.createPlant({ ...MONSTERA, name: 'Ficus' }));
    assert.deepEqual([taken.error, taken.status, taken.canRetry], [40003, 400, false]);
    const stranger = new PlantStore({ url: service.url, token: 'plant_stranger' });
    const refused = await thrownBy(() => stranger.createPlant(MONSTERA));
    assert.deepEqual([refused.error, refused.status, refused.canRetry], [40102, 401, false]);
    const lost = new PlantStore({ url: `${service.url}/api`, token: service.token });
    assert.equal((await thrownBy(() => lost.createPlant(MONSTERA))).error, 40401);
  });

  test('and nothing that is left of it keeps the process from ending', async () => {
    await using service = await startTestService();
    const client = new URL('../src/client/plant-store.ts', import.meta.url).href;
    const program = `
      import { PlantStore } from '${client}';
      const store = new PlantStore();
      await Promise.all([1, 2, 3].map(id => store.createPlant({ id, name: 'a' })));
      await new Promise(setImmediate);
      process.stdout.write(process.getActiveResourcesInfo().join());`;
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ['--input-type=module-typescript', '--eval', program],
      { env: { PLANT_STORE_URL: service.url, PLANT_STORE_TOKEN: service.token } },
    );
    // A pipe to this process, and no socket or timer.
    assert.doesNotMatch(stdout, /TCP|Timeout/);
  });

  test('until it is closed', async () => {
    await using silent = await startServer(() => {});
    for (const sending of [{}, { fetch }]) {
      const store = new PlantStore({ ...sending, url: silent.url, token: 'token' });
      const sent = thrownBy(() => store.createPlant(MONSTERA));
      store.close();
      for (const error of [await sent, await thrownBy(() => store.createPlant(MONSTERA))])
        assert.deepEqual([error.code, error.status, error.canRetry], ['ECONNABORTED', undefined, false]);
    }
  });

  test('and with a fetch that does not listen to its signal: for as long as it waits, until it is aborted or closed', {
    timeout: 20_000,
  }, async () => {
    let calls = 0;
    const deaf = (): Promise<Response> => {
      calls++;
      return new Promise(() => {});
    };
    const open = (options = {}): PlantStore =>
      new PlantStore({
        url: 'http://plants.example',
        token: 'token',
        fetch: deaf,
        retryForMs: 0,
        ...options,
      });
    const late = await thrownBy(() => open({ answerWaitMs: 20 }).createPlant(MONSTERA));
    assert.deepEqual([late.code, late.canRetry], ['ETIMEDOUT', true]);
    const reason = new Error('enough');
    const ending = new AbortController();
    const aborted = open().createPlant(MONSTERA, { signal: ending.signal });
    ending.abort(reason);
    await assert.rejects(aborted, error => error === reason);
    const store = open();
    const closed = thrownBy(() => store.createPlant(MONSTERA));
    store.close();
    assert.equal((await closed).code, 'ECONNABORTED');
    assert.equal(calls, 3);
    assert.equal((await thrownBy(() => store.createPlant(MONSTERA))).code, 'ECONNABORTED');
    assert.equal(calls, 3, 'a closed client has sent a plant');
  });

  test('from where the environment says', async t => {
    await using service = await startTestService();
    assert.throws(() => new PlantStore({ token: 'a' }), /PLANT_STORE_URL/);
    assert.throws(() => new PlantStore({ url: service.url }), /PLANT_STORE_TOKEN/);
    t.after(() => {
      delete process.env.PLANT_STORE_URL;
      delete process.env.PLANT_STORE_TOKEN;
    });
    process.env.PLANT_STORE_URL = service.url;
    process.env.PLANT_STORE_TOKEN = service.token;
    assert.equal((await new PlantStore().createPlant(MONSTERA)).outcome, 'created');
    assert.throws(() => new PlantStore({ url: 'ftp://host' }), /http or https/);
    assert.throws(
      () => new PlantStore({ url: '127.0.0.1:8080' }),
      /^TypeError: url is no address: 127\.0\.0\.1:8080;/,
    );
    assert.throws(() => new PlantStore({ url: service.url, token: '' }), /token is empty/);
    assert.throws(() => new PlantStore({ token: 'plant_a\n' }), /blanks or a line end around it/);
    assert.throws(() => new PlantStore({ fetch: 5 as never }), /fetch must be a function/);
    assert.throws(() => new PlantStore({ answerWaitMs: 0 }), /answerWaitMs must be a whole number from 1 to/);
    assert.throws(
      () => new PlantStore({ retryForMs: Infinity }),
      /retryForMs must be a whole number from 0 to/,
    );
    const none = new PlantStore().createPlants([MONSTERA], { concurrency: 0 });
    await assert.rejects(none.next(), /concurrency must be a whole number from 1 to/);
    assert.throws(() => new PlantStore({ url: `${service.url}?a=b` }), /without user name/);
    assert.throws(() => new PlantStore({ token: 'a b' }), /no.* bearer token|not a bearer token/);
  });
});

for (const [way, sending] of [
  ['over connections of its own', {}],
  ['with fetch', { fetch }],
] as const) {
  suite(`the client tries again ${way}`, () => {
    test('what may pass, and not before the answer asks for it', async () => {
      const at: number[] = [];
      await using server = await startServer((request, response, count) => {
        at.push(performance.now());
        if (count === 1)
          response.writeHead(503, { 'Retry-After': '1' }).end('{"error":50301,"message":"busy"}');
        else if (count === 2) request.socket.destroy();
        else if (count === 3) response.writeHead(502).end('<html>');
        else response.writeHead(200, STORED_HEADERS).end(MONSTERA_JSON);
      });
      const stored = await new PlantStore({ ...sending, url: server.url, token: 'token' }).createPlant(
        MONSTERA,
      );
      assert.deepEqual(stored, { ...MONSTERA, revision: 1, outcome: 'created' });
      assert.equal(server.count(), 4);
      assert.ok(at[1]! - at[0]! >= 999, `${at[1]! - at[0]!} ms`);
    });

    test('a request that was cut on its way, as the service says of it', async () => {
      await using server = await startServer((request, response, count) => {
        if (count === 1) request.socket.destroy();
        else if (count === 2) response.writeHead(400).end('{"error":40000,"message":"not valid HTTP"}');
        else response.writeHead(200, STORED_HEADERS).end(MONSTERA_JSON);
      });
      const store = new PlantStore({ ...sending, url: server.url, token: 'token' });
      assert.equal((await store.createPlant(MONSTERA)).outcome, 'created');
      assert.equal(server.count(), 3);
    });

    test('and says of a refusal that an earlier try may have been stored, but only then', async () => {
      const refusals: [number, number][] = [
        [400, 40001],
        [400, 40003],
        [401, 40102],
      ];
      for (const [status, number] of refusals) {
        for (const first of ['cut', 503, 408, 429]) {
          await using server = await startServer((request, response, count) => {
            if (count > 1) response.writeHead(status).end(`{"error":${number},"message":"no"}`);
            else if (typeof first === 'number') response.writeHead(first).end();
            else request.socket.destroy();
          });
          const store = new PlantStore({ ...sending, url: server.url, token: 'token' });
          const error = await thrownBy(() => store.createPlant(MONSTERA));
          assert.deepEqual([error.error, error.status, error.canRetry], [number, status, false]);
          const isUnknown = first === 'cut' || first === 503;
          assert.equal(
            error.message,
            isUnknown
              ? 'no; an earlier try was not confirmed, so the plant may be stored all the same'
              : 'no',
          );
        }
      }
    });

    test('no longer than it was told, and then says why', async () => {
      await using server = await startServer((_request, response) =>
        response.writeHead(503).end('{"error":50302,"message":"the store did not confirm this plant"}'),
      );
      const store = new PlantStore({ ...sending, url: server.url, token: 'token', retryForMs: 500 });
      const error = await thrownBy(() => store.createPlant(MONSTERA));
      assert.deepEqual([error.error, error.status, error.canRetry], [50302, 503, true]);
      assert.ok(server.count() >= 2, `${server.count()} tries`);
      const once = new PlantStore({ ...sending, url: server.url, token: 'token', retryForMs: 0 });
      const before = server.count();
      await thrownBy(() => once.createPlant(MONSTERA));
      assert.equal(server.count(), before + 1);
    });

    test('when no answer comes in time', async () => {
      await using server = await startServer((_request, response, count) => {
        if (count === 2) response.writeHead(200, STORED_HEADERS).end(MONSTERA_JSON);
      });
      const store = new PlantStore({ ...sending, url: server.url, token: 'token', answerWaitMs: 200 });
      assert.equal((await store.createPlant(MONSTERA)).outcome, 'created');
      const once = new PlantStore({
        ...sending,
        url: server.url,
        token: 'token',
        answerWaitMs: 50,
        retryForMs: 0,
      });
      const error = await thrownBy(() => once.createPlant(MONSTERA));
      assert.match(error.message, /no answer from .* within 50 ms/);
      assert.deepEqual([error.error, error.status, error.canRetry], [undefined, undefined, true]);
    });

    test('but not what no plant store answers', async () => {
      const answers: [number, Record<string, string>, string][] = [
        [200, {}, MONSTERA_JSON],
        [200, { ...STORED_HEADERS, 'Plant-Id': '9007199254740992' }, MONSTERA_JSON],
        [200, STORED_HEADERS, '<html>'],
        [200, STORED_HEADERS, '{"name":"Monstera"}'],
        [200, { ...STORED_HEADERS, 'Plant-Revision': '1e400' }, MONSTERA_JSON],
        [404, {}, '<html>'],
        [302, { Location: '/elsewhere' }, ''],
      ];
      await using server = await startServer((_request, response, count) => {
        const [status, headers, body] = answers[count - 1]!;
        response.writeHead(status, headers).end(body);
      });
      const store = new PlantStore({ ...sending, url: server.url, token: 'token' });
      for (const [status] of answers) {
        const error = await thrownBy(() => store.createPlant(MONSTERA));
        assert.deepEqual([error.error, error.status, error.canRetry], [undefined, status, false]);
      }
      assert.equal(server.count(), answers.length);
    });

    test('and reads no more of an answer that goes on and on', async () => {
      let sent = 0;
      await using server = await startServer((_request, response) => {
        response.writeHead(400, { 'Content-Type': 'application/json' });
        const write = (): void => {
          if (response.destroyed) return;
          sent += 65_536;
          response.write('x'.repeat(65_536), () => setImmediate(write));
        };
        write();
      });
      const store = new PlantStore({ ...sending, url: server.url, token: 'token' });
      const error = await thrownBy(() => store.createPlant(MONSTERA));
      assert.deepEqual([error.error, error.status], [undefined, 400]);
      assert.ok(sent < 64 * 1024 * 1024, `${sent} bytes`);
    });

    test('until its signal is aborted, while it waits for an answer or for the next try', async () => {
      await using silent = await startServer(() => {});
      await using busy = await startServer((_request, response) => response.writeHead(503).end());
      for (const { url } of [silent, busy]) {
        const reason = new Error('enough');
        const ending = new AbortController();
        const sent = new PlantStore({ ...sending, url, token: 'token' }).createPlant(MONSTERA, {
          signal: ending.signal,
        });
        setTimeout(() => ending.abort(reason), 50);
        await assert.rejects(sent, error => error === reason);
      }
      const aborted = AbortSignal.abort(new Error('before'));
      const before = silent.count();
      const store = new PlantStore({ ...sending, url: silent.url, token: 'token' });
      await assert.rejects(store.createPlant(MONSTERA, { signal: aborted }), /before/);
      assert.equal(silent.count(), before);
    });
  });
}

suite('the client sends many plants', () => {
  test('in order, with what became of each', async () => {
    await using service = await startTestService();
    const store = new PlantStore(service);
    const inputs = Array.from({ length: 500 }, (_, index) =>
      index % 100 === 50 ? { id: 'none', name: 'x' } : { id: BigInt(index), name: `plant ${index}` },
    );
    const results = await Array.fromAsync(store.createPlants(inputs, { concurrency: 16 }));
    assert.deepEqual(
      results.map(({ input }) => input),
      inputs,
    );
    for (const [index, { plant, error }] of results.entries()) {
      if (index % 100 === 50) assert.equal(error?.error, 40002);
      else assert.deepEqual([plant?.id, plant?.outcome], [BigInt(index), 'created']);
    }
  });

  test('with the contents of one id in their order', async () => {
    await using service = await startTestService();
    const inputs = Array.from({ length: 100 }, (_, index) => ({
      id: index % 2 ? 7 : '07',
      name: `name ${index}`,
    }));
    const results = await Array.fromAsync(new PlantStore(service).createPlants(inputs, { concurrency: 32 }));
    assert.deepEqual(
      results.map(({ plant }) => [plant?.name, plant?.revision]),
      inputs.map(({ name }, index) => [name, index + 1]),
    );
  });

  test('as they were when they were given', async () => {
    await using service = await startTestService();
    function* reused(): Generator<PlantInput> {
      const plant = { id: 7, name: '' };
      for (const name of ['first', 'second']) yield Object.assign(plant, { name });
    }
    const results = await Array.fromAsync(new PlantStore(service).createPlants(reused()));
    assert.deepEqual(
      results.map(({ plant }) => plant?.name),
      ['first', 'second'],
    );
  });

  test('and takes no more than it may send', async () => {
    await using service = await startTestService();
    let taken = 0;
    async function* endless(): AsyncGenerator<PlantInput> {
      for (;;) yield { id: taken++, name: 'plant' };
    }
    const results = new PlantStore(service).createPlants(endless(), { concurrency: 8 });
    for (let count = 1; count <= 100; count++) {
      const { value } = await results.next();
      assert.equal(value?.plant?.id, BigInt(count - 1));
      assert.ok(taken < count + 8, `${taken} taken for ${count}`);
    }
    await results.return();
  });

  test('up to where the inputs fail, and says of those before what became of them', async () => {
    await using service = await startTestService();
    const failure = new Error('the file ended early');
    async function* inputs(): AsyncGenerator<PlantInput> {
      for (let id = 1n; id <= 10n; id++) yield { id, name: 'A' };
      throw failure;
    }
    let stored = 0;
    const sendAll = async (): Promise<void> => {
      for await (const { plant } of new PlantStore(service).createPlants(inputs())) stored += plant ? 1 : 0;
    };
    await assert.rejects(sendAll, failure);
    assert.equal(stored, 10);
  });

  test('and names what is no plant at all', async () => {
    const store = new PlantStore({ url: 'http://127.0.0.1:1', token: 'plant_a' });
    const inputs = [undefined, null, 5] as unknown as PlantInput[];
    for await (const { error } of store.createPlants(inputs)) {
      assert.ok(error instanceof PlantStoreError);
      assert.match(error.message, /id is required; name is required/);
    }
  });

  test('and stops where no further one would fare better', async () => {
    await using service = await startTestService();
    let taken = 0;
    function* endless(): Generator<PlantInput> {
      for (;;) yield { id: taken++, name: 'plant' };
    }
    const stranger = new PlantStore({ url: service.url, token: 'plant_stranger' });
    const error = await thrownBy(() => Array.fromAsync(stranger.createPlants(endless())));
    assert.equal(error.error, 40102);
    assert.ok(taken <= 64, `${taken} taken`);
  });

  test('and says of each what is said of one plant, and throws what is said of all', async () => {
    for (const { number, status, retry } of Object.values(ERRORS)) {
      await using server = await startServer((_request, response, count) => {
        if (count > 1) response.writeHead(200, STORED_HEADERS).end(MONSTERA_JSON);
        else response.writeHead(status).end(JSON.stringify({ error: number, message: 'no' }));
      });
      const store = new PlantStore({ url: server.url, token: 'token', retryForMs: 0 });
      const results = Array.fromAsync(store.createPlants([MONSTERA, MONSTERA]));
      if ([40001, 40002, 40003, 41301].includes(number)) {
        const [refused, stored] = await results;
        assert.deepEqual([refused?.error?.error, stored?.plant?.outcome], [number, 'created']);
      } else {
        const error = await thrownBy(() => results);
        assert.deepEqual([error.error, error.canRetry], [number, retry || number === 40000]);
      }
    }
  });

  test('over the whole range of ids, and export has every digit', async () => {
    await using service = await startTestService();
    const plants = wholeRangePlants(20_000);
    for await (const { plant, error, input } of new PlantStore(service).createPlants(plants)) {
      assert.equal(error, undefined);
      assert.equal(plant?.id, input.id);
    }
    assert.equal(await differencesInExport(plants, service.database), 0);
  });

  test('whatever they are, and export shows each as it was given', async () => {
    await using service = await startTestService();
    const store = new PlantStore(service);
    const text = fc.string({ unit: 'binary', maxLength: 20 }).filter(each => !each.includes('\0'));
    const plant = fc.record(
      { id: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), name: text, tag: text },
      { requiredKeys: ['id', 'name'] },
    );
    const many = fc.uniqueArray(plant, { selector: ({ id }) => id, minLength: 200, maxLength: 400 });
    const [inputs] = fc.sample(many, {
      numRuns: 1,
      seed: Number(process.env.PLANT_STORE_TEST_SEED ?? Date.now()),
    });
    for await (const { error } of store.createPlants(inputs!)) assert.equal(error, undefined);
    assert.deepEqual(
      await plantsOf(service.database),
      inputs!.map(each => ({ ...each })).sort((a, b) => (a.id < b.id ? -1 : 1)),
    );
  });
});
