import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { Readable } from 'node:stream';
import { suite, type TestContext, test } from 'node:test';
import { pipelinedTransport } from '../../src/cli/shared/pipelined-transport.ts';
import {
  type CreatePlantsOptions,
  PlantChanged,
  type PlantInput,
  type PlantResult,
  PlantStore,
  PlantStoreError,
  type PlantStoreOptions,
} from '../../src/client/plant-store.ts';
import { ERRORS } from '../../src/core/contract/errors.ts';
import { errorBody, type Post, startFaulty } from '../harness/faulty-service.ts';
import { type LoopbackServer, listen } from '../harness/loopback-server.ts';
import { startTestService } from '../harness/running-service.ts';
import { until } from '../harness/until.ts';

const MONSTERA = { id: 9007199254740993n, name: 'Monstera deliciosa', tag: 'houseplant' };
const MONSTERA_JSON = '{"name":"Monstera deliciosa","tag":"houseplant"}';
const STORED_HEADERS = { 'Plant-Id': '9007199254740993', 'Plant-Revision': '1', 'Plant-Outcome': 'created' };

/** What a server does: no response, a closed connection, the plant as stored, or this response. */
type Reply = 'silence' | 'cut' | 'stored' | [status: number, headers?: Record<string, string>, body?: string];

function errorReply(number: number): Reply {
  return [Math.floor(number / 100), {}, errorBody(number, 'no')];
}

function reply(what: Reply, { request, store, respond }: Post): void {
  if (what === 'cut') request.socket.destroy();
  else if (what === 'stored') store();
  else if (what !== 'silence') respond(what[0], what[2], what[1]);
}

/** Replies in this order, and repeats the last one. */
async function startServer(replies: Reply[]): Promise<LoopbackServer & { times: number[] }> {
  const times: number[] = [];
  const server = await startFaulty(post => {
    times.push(performance.now());
    reply(replies[Math.min(post.number, replies.length) - 1]!, post);
  });
  return Object.assign(server, { times });
}

function clientOf(url: string, options: PlantStoreOptions = {}): PlantStore {
  return new PlantStore({ url, token: 'plant_test', ...options });
}

/** Speeds up the delays between attempts, of all tests of this process: none may run beside this one. */
function speedUpTimers(context: TestContext): void {
  const ticking = setInterval(() => context.mock.timers.tick(1_000), 5);
  context.mock.timers.enable({ apis: ['setTimeout'] });
  context.after(() => clearInterval(ticking));
}

async function thrownBy(run: () => Promise<unknown>): Promise<PlantStoreError> {
  const error = await run().then(
    () => assert.fail('nothing was thrown'),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof PlantStoreError, String(error));
  return error;
}

test('the client sends a plant and its result is plain data, which JSON.stringify writes with the id as text', async () => {
  await using service = await startTestService();
  const store = new PlantStore(service);
  const results = [await store.createPlant(MONSTERA)];
  for await (const { plant } of store.createPlants([MONSTERA])) results.push(plant!);
  for (const [index, outcome] of (['created', 'unchanged'] as const).entries()) {
    const expected = { ...MONSTERA, revision: 1, outcome };
    for (const copy of [(each: object) => each, (each: object) => ({ ...each }), structuredClone])
      assert.deepEqual(copy(results[index]!), expected);
    const text = `{"id":"${MONSTERA.id}",${MONSTERA_JSON.slice(1, -1)},"revision":1,"outcome":"${outcome}"}`;
    assert.equal(JSON.stringify([results[index]]), `[${text}]`);
    // The text is a plant to send again.
    assert.equal((await store.createPlant(JSON.parse(text))).outcome, 'unchanged');
  }
});

test('the client sends a plant and rejects an invalid one itself, and names each invalid field', async () => {
  await using server = await startServer(['silence']);
  const faults: [unknown, RegExp][] = [
    [undefined, /^id is required; name is required$/],
    [{ name: 'a' }, /^id is required$/],
    [{ id: 2 ** 53, name: 'a' }, /^id is a number that may have lost digits/],
    [{ id: 1.5, name: 'a' }, /^id must be an integer from -9223372036854775808/],
    [{ id: 2n ** 63n, name: 'a' }, /^id must be/],
    [{ id: '1e3', name: 'a' }, /^id must be/],
    [{ id: null, name: 'a' }, /^id must be/],
    [{ id: 1n }, /^name is required$/],
    [{ id: 1n, name: 5 }, /^name must be a string$/],
    [{ id: 1n, name: '\ud800' }, /^name must not contain an unpaired surrogate$/],
    [{ id: 1n, name: 'a', tag: null }, /^tag must be a string$/],
    [{ id: 'x', name: '\0', tag: 1 }, /^id must be .*; name must not contain U\+0000; tag must be a string$/],
  ];
  for (const [input, message] of faults) {
    const error = await thrownBy(() => clientOf(server.url).createPlant(input as PlantInput));
    assert.match(error.message, message);
    assert.deepEqual([error.error, error.status, error.canRetry], [40002, undefined, false]);
  }
  assert.equal(server.times.length, 0);
});

test('the client sends a plant and rejects a response that a plant store never sends, without a retry', async () => {
  const responses: [status: number, headers: Record<string, string>, body: string][] = [
    [200, {}, MONSTERA_JSON],
    [200, { ...STORED_HEADERS, 'Plant-Id': '9007199254740992' }, MONSTERA_JSON],
    [200, { ...STORED_HEADERS, 'Plant-Revision': '1e400' }, MONSTERA_JSON],
    [200, STORED_HEADERS, '<html>'],
    [200, STORED_HEADERS, '{"name":"Monstera","tag":"houseplant"}'],
    [200, STORED_HEADERS, '{"name":"Monstera deliciosa"}'],
    [302, { Location: '/elsewhere' }, ''],
    [404, {}, '<html>'],
    [500, {}, ''],
  ];
  for (const response of responses) {
    await using server = await startServer([response]);
    const thrown = await thrownBy(() => clientOf(server.url).createPlant(MONSTERA));
    const { error, status, canRetry, message } = thrown;
    const expected = [undefined, response[0], false, 1];
    assert.deepEqual([error, status, canRetry, server.times.length], expected, JSON.stringify(response));
    if (response[1]['Plant-Id'] === '9007199254740992')
      assert.match(message, /changed the id from 9007199254740993 to 9007199254740992/);
  }
});

test('the client names the option or the variable whose address has a wrong path', async t => {
  await using service = await startTestService();
  await using gateway = await startServer([[404, {}, '<html>']]);
  const { url, token } = service;
  const messageOf = async (options: PlantStoreOptions): Promise<string> =>
    (await thrownBy(() => new PlantStore({ token, ...options }).createPlant(MONSTERA))).message;
  const what = 'the address of the service without /plants';
  const ours = `this path does not exist; to create a plant, send POST /plants; check the option url, ${what}`;
  assert.equal(await messageOf({ url: `${url}/v1` }), `${ours}: ${url}/v1`);
  process.env.PLANT_STORE_URL = gateway.url;
  t.after(() => delete process.env.PLANT_STORE_URL);
  const other = `the response is 404; a plant store does not send this; check PLANT_STORE_URL, ${what}`;
  assert.equal(await messageOf({}), `${other}: ${gateway.url}/`);
});

test('the client sends a plant and mentions in a rejection that an earlier attempt may have stored it', async () => {
  const cases: [replies: Reply[], error: number, isUnknown: boolean][] = [
    [['cut'], 40003, true],
    [[[503]], 40001, true],
    [['cut', [429]], 40102, true],
    [[[408]], 40003, false],
    [[[429]], 40102, false],
  ];
  for (const [replies, number, isUnknown] of cases) {
    await using server = await startServer([...replies, errorReply(number)]);
    const { error, message, canRetry } = await thrownBy(() => clientOf(server.url).createPlant(MONSTERA));
    const addition = isUnknown ? '; an earlier attempt was not confirmed, so the plant may be stored' : '';
    assert.deepEqual([error, message, canRetry], [number, `no${addition}`, false]);
    assert.equal(server.times.length, replies.length + 1);
  }
});

test('the client sends a plant with options that it checks, and with defaults from the environment', async t => {
  await using service = await startTestService();
  const unset = (): void => {
    delete process.env.PLANT_STORE_URL;
    delete process.env.PLANT_STORE_TOKEN;
  };
  // The README tells users to set them.
  unset();
  t.after(unset);
  const url = 'http://127.0.0.1:8080';
  const malformed: [PlantStoreOptions, RegExp][] = [
    [{ token: 'a' }, /PLANT_STORE_URL/],
    [{ url }, /PLANT_STORE_TOKEN/],
    [{ url: 'ftp://host', token: 'a' }, /http or https/],
    [{ url: '127.0.0.1:8080', token: 'a' }, /^url is not a valid URL: 127\.0\.0\.1:8080;/],
    [{ url: `${url}?a=b`, token: 'a' }, /without user name/],
    [{ url, token: '' }, /token is empty/],
    [{ url, token: 'plant_a\n' }, /has white space or another/],
    [{ url, token: 'a b' }, /another character that a token cannot have/],
    [{ url, token: 'a', fetch: 5 as never }, /fetch must be a function/],
    [{ url, token: 'a', responseTimeoutMs: 0 }, /responseTimeoutMs must be an integer from 1 to/],
    [{ url, token: 'a', retryForMs: Infinity }, /retryForMs must be an integer from 0 to/],
  ];
  for (const [options, message] of malformed)
    assert.throws(() => new PlantStore(options), { name: 'TypeError', message });
  assert.throws(() => clientOf(url).createPlants([], { concurrency: 0 }), /concurrency must be an integer/);
  process.env.PLANT_STORE_URL = service.url;
  process.env.PLANT_STORE_TOKEN = service.token;
  assert.equal((await new PlantStore().createPlant(MONSTERA)).outcome, 'created');
});

test('the client sends a plant with a fetch that ignores its signal, and honours timeout, abort and close', {
  timeout: 60_000,
}, async () => {
  let calls = 0;
  const silent = (): Promise<Response> => {
    calls++;
    return new Promise(() => {});
  };
  const open = (options = {}): PlantStore => clientOf('http://plants.example', { fetch: silent, ...options });
  const timeout = { responseTimeoutMs: 20, retryForMs: 0 };
  const timedOut = await thrownBy(() => open(timeout).createPlant(MONSTERA));
  assert.deepEqual([timedOut.code, timedOut.canRetry], ['ETIMEDOUT', true]);
  const reason = new Error('enough');
  const { promise: responded, resolve: onResponse } = Promise.withResolvers<void>();
  const busy = async (): Promise<Response> => {
    onResponse();
    return Response.json({}, { status: 503, headers: { 'Retry-After': '60' } });
  };
  const patient = { fetch: busy, retryForMs: 100_000 };
  for (const [options, mayEnd] of [
    [{}, Promise.resolve()],
    [patient, responded],
  ] as const) {
    const ending = new AbortController();
    const aborted = open(options).createPlant(MONSTERA, { signal: ending.signal });
    const rejected = assert.rejects(aborted, error => error === reason);
    await mayEnd.then(() => new Promise(setImmediate));
    ending.abort(reason);
    await rejected;
  }
  const store = open();
  const before = store.createPlant(MONSTERA, { signal: AbortSignal.abort(reason) });
  await assert.rejects(before, error => error === reason);
  const closed = thrownBy(() => store.createPlant(MONSTERA));
  store.close();
  for (const error of [await closed, await thrownBy(() => store.createPlant(MONSTERA))])
    assert.deepEqual([error.code, error.status, error.canRetry], ['ECONNABORTED', undefined, false]);
  assert.equal(calls, 3, 'an aborted or closed client has sent a plant');
});

/** A value of Retry-After, and the delay that the error has. */
const RETRY_AFTER: [value: string, expectedMs: number | [min: number, max: number]][] = [
  ['2', 2_000],
  ['0', 0],
  ['1.5', 1_500],
  ['32.5', 32_500],
  ['45.1', 45_100],
  // An HTTP date (RFC 9110 section 5.6.7) has whole seconds.
  [new Date(Date.now() + 3_600_000).toUTCString(), [1_800_000, 3_600_000]],
  ['Sun, 06 Nov 1994 08:49:37 GMT', 0],
  ['Sunday, 06-Nov-94 08:49:37 GMT', 0],
  [asctime(new Date(Date.now() + 3_600_000)), [1_800_000, 3_600_000]],
  // Neither a finite number nor a date: the client has its own delay.
  ...['', '9'.repeat(400), '9'.repeat(307), '-3', '1 s', '1e3', '+5', 'NaN', '12 2099', '2099-01-01'].map(
    (text): [string, number] => [text, 0],
  ),
];

/** The obsolete form of a date without a time zone, such as `Sun Nov  6 08:49:37 1994`. */
function asctime(date: Date): string {
  const [day, dayOfMonth, month, year, time] = date.toUTCString().replace(',', '').split(' ');
  return `${day} ${month} ${dayOfMonth!.replace(/^0/, ' ')} ${time} ${year}`;
}

test('Retry-After is a number of seconds or a date, and any other text is ignored', async () => {
  for (const [value, expectedMs] of RETRY_AFTER) {
    await using server = await startServer([[503, { 'Retry-After': value }]]);
    const store = clientOf(server.url, { retryForMs: 0 });
    const { retryAfterMs } = await thrownBy(() => store.createPlant(MONSTERA));
    const [minMs, maxMs] = Array.isArray(expectedMs) ? expectedMs : [expectedMs, expectedMs];
    assert.ok(minMs <= retryAfterMs && retryAfterMs <= maxMs, `${value}: ${retryAfterMs}`);
  }
});

type AttemptCase = [what: string, replies: Reply[], attempts: number, error?: [number, number, boolean]];

const TRANSIENT: AttemptCase[] = [
  ['a cut connection', ['cut', 'stored'], 2],
  [
    'gateway responses for an unavailable service',
    [[408], [429], [502, {}, '<html>'], [503], [504], 'stored'],
    6,
  ],
  ['a request that was truncated once', ['cut', errorReply(40000), 'stored'], 3],
  ['a request that is truncated each time: five attempts', [errorReply(40000)], 5, [40000, 400, true]],
  ['an internal error: ten attempts', [errorReply(50001)], 10, [50001, 500, true]],
  [
    'internal errors, and then truncated requests: five attempts of these',
    [...Array<Reply>(5).fill(errorReply(50001)), errorReply(40000)],
    10,
    [40000, 400, true],
  ],
];

for (const [way, isPipelined] of [
  ['with fetch', false],
  ['over the pipelined connection of import', true],
] as const) {
  suite(`the client ${way}`, () => {
    const open = (url: string, options: PlantStoreOptions = {}): PlantStore => {
      const transport = isPipelined ? pipelinedTransport(new URL(url), 64).send : undefined;
      return clientOf(url, { transport, ...options });
    };

    test('retries after a response timeout', async () => {
      await using server = await startServer(['silence', 'stored']);
      const stored = await open(server.url, { responseTimeoutMs: 200 }).createPlant(MONSTERA);
      assert.deepEqual(stored, { ...MONSTERA, revision: 1, outcome: 'created' });
    });

    test('retries after Retry-After, and for at most retryForMs', async () => {
      await using server = await startServer([[503, { 'Retry-After': '1' }], 'stored']);
      await open(server.url).createPlant(MONSTERA);
      assert.ok(server.times[1]! - server.times[0]! >= 999, `${server.times}`);
      await using busy = await startServer([errorReply(50302)]);
      const store = open(busy.url, { retryForMs: 500 });
      assert.equal((await thrownBy(() => store.createPlant(MONSTERA))).error, 50302);
      // By default it is 30 s.
      assert.ok(busy.times.length >= 2 && busy.times.at(-1)! - busy.times[0]! < 20_000, `${busy.times}`);
    });

    test('stops reading a response of 64 MB', async () => {
      const text = Readable.from(new Array(1_000).fill('x'.repeat(65_536)));
      const server = createServer((request, response) => {
        request.resume();
        text.pipe(response.writeHead(400));
      });
      await using long = await listen(server);
      const error = await thrownBy(() => open(long.url).createPlant(MONSTERA));
      assert.deepEqual([error.error, error.status], [undefined, 400]);
      assert.ok(!text.readableEnded);
    });

    test('limits the time of a complete response, also if it arrives slowly, and then closes its connection', async () => {
      let closed = false;
      const server = createServer((_, response) => {
        const sending = setInterval(() => response.write(' '), 10);
        response.on('close', () => {
          clearInterval(sending);
          closed = true;
        });
      });
      await using slow = await listen(server);
      const store = open(slow.url, { responseTimeoutMs: 200, retryForMs: 0 });
      const error = await thrownBy(() => store.createPlant(MONSTERA));
      assert.deepEqual([error.code, error.status, error.canRetry], ['ETIMEDOUT', undefined, true]);
      assert.match(error.message, /no response from .* within 200 ms/);
      await until('the connection is closed', () => closed);
    });

    test('retries', async context => {
      speedUpTimers(context);
      const options = { responseTimeoutMs: 1_000_000_000, retryForMs: 60_000 };
      for (const [what, replies, attempts, error] of TRANSIENT)
        await context.test(what, async () => {
          await using server = await startServer(replies);
          const sent = open(server.url, options).createPlant(MONSTERA);
          if (error === undefined) assert.equal((await sent).outcome, 'created');
          else {
            const thrown = await thrownBy(() => sent);
            assert.deepEqual([thrown.error, thrown.status, thrown.canRetry], error);
          }
          assert.equal(server.times.length, attempts);
        });
    });
  });
}

const plain = (count: number): PlantInput[] =>
  Array.from({ length: count }, (_, index) => ({ id: BigInt(index), name: `plant ${index}` }));

async function readAll(results: AsyncIterable<PlantResult>): Promise<[PlantResult[], unknown]> {
  const read: PlantResult[] = [];
  try {
    for await (const result of results) read.push(result);
  } catch (error) {
    return [read, error];
  }
  return [read, undefined];
}

test('the client sends many plants with the contents of one id in order, also from one object that the caller reuses', async () => {
  await using service = await startTestService();
  function* reused(): Generator<PlantInput> {
    const plant = { id: 7 as number | string, name: '' };
    for (let index = 0; index < 100; index++)
      yield Object.assign(plant, { id: index % 2 ? 7 : '07', name: `name ${index}` });
  }
  const results = await Array.fromAsync(new PlantStore(service).createPlants(reused(), { concurrency: 32 }));
  assert.deepEqual(
    results.map(({ plant }) => [plant?.name, plant?.revision]),
    Array.from({ length: 100 }, (_, index) => [`name ${index}`, index + 1]),
  );
});

test('the client sends many plants and reads no more inputs than it may send', async () => {
  await using service = await startTestService();
  const cases: [number, string][] = [
    [8, 'plant'],
    // Fewer long ones: at most 16 Mi characters are in flight.
    [1000, 'x'.repeat(1_000_000)],
  ];
  for (const [concurrency, name] of cases) {
    let read = 0;
    async function* endless(): AsyncGenerator<PlantInput> {
      for (;;) yield { id: read++, name };
    }
    const results = new PlantStore(service).createPlants(endless(), { concurrency });
    for (let count = 1; count <= 30; count++) {
      const { value } = await results.next();
      assert.equal(value?.plant?.id, BigInt(count - 1));
      assert.ok(read < count + Math.min(concurrency, 17), `${read} read for ${count} results`);
    }
    await results.return();
  }
});

test('the client sends many plants and yields results before the next input arrives', {
  timeout: 60_000,
}, async () => {
  await using service = await startTestService();
  async function* slow(): AsyncGenerator<PlantInput> {
    yield* plain(2);
    await new Promise(() => {});
  }
  const results = new PlantStore(service).createPlants(slow());
  for (const id of [0n, 1n]) assert.equal((await results.next()).value?.plant?.id, id);
});

test('the client stores a plant only under ifRevision, and throws PlantChanged with both revisions', async () => {
  await using service = await startTestService();
  const store = new PlantStore(service);
  const elm = { id: 1n, name: 'elm' };
  const oak = { id: 1n, name: 'oak' };
  assert.equal((await store.createPlant(elm, { ifRevision: 0 })).outcome, 'created');
  assert.equal((await store.createPlant(elm, { ifRevision: 7 })).outcome, 'unchanged');
  const changed = await thrownBy(() => store.createPlant(oak, { ifRevision: 0 }));
  assert.ok(changed instanceof PlantChanged && changed instanceof PlantStoreError);
  assert.deepEqual(
    [changed.name, changed.error, changed.status, changed.canRetry],
    ['PlantChanged', 41201, 412, false],
  );
  assert.deepEqual([changed.expectedRevision, changed.storedRevision], [0, 1]);
  const missing = await thrownBy(() => store.createPlant({ id: 2, name: 'oak' }, { ifRevision: 3 }));
  assert.ok(missing instanceof PlantChanged);
  assert.deepEqual([missing.expectedRevision, missing.storedRevision], [3, 0]);
  for (const ifRevision of [-1, 0.5, 2 ** 31, Number.NaN]) {
    const invalid = { name: 'TypeError', message: /^ifRevision must be an integer from 0 to 2147483647/ };
    await assert.rejects(store.createPlant(oak, { ifRevision }), invalid);
    assert.throws(() => store.createPlants([oak], { ifRevision }), invalid);
    const [, thrown] = await readAll(store.createPlants([oak], { ifRevision: () => ifRevision }));
    assert.throws(() => {
      throw thrown;
    }, invalid);
  }

  const plants = [oak, elm, { id: 3, name: 'fir' }].map((plant, index) => ({ ...plant, known: index }));
  const shown = async (options: CreatePlantsOptions<(typeof plants)[number]>) => {
    const [results, thrown] = await readAll(store.createPlants(plants, options));
    assert.equal(thrown, undefined);
    return results.map(({ plant, error }) => plant?.outcome ?? (error as PlantChanged).storedRevision).join();
  };
  assert.equal(await shown({ ifRevision: 0 }), '1,unchanged,created');
  assert.equal(await shown({ ifRevision: ({ known }) => known + 1 }), 'revised,revised,unchanged');
});

test('the client retries a conditional plant whose response is lost, and finds it unchanged or replaced', async () => {
  await using service = await startTestService();
  const losing = (onLost: () => Promise<unknown>): typeof fetch => {
    let isFirst = true;
    return async (...request) => {
      const response = await fetch(...request);
      if (!isFirst) return response;
      isFirst = false;
      await onLost();
      throw new TypeError('the response was lost');
    };
  };
  const oak = { id: 1n, name: 'oak' };
  const other = new PlantStore(service);
  const store = new PlantStore({ ...service, fetch: losing(async () => {}) });
  assert.equal((await store.createPlant(oak, { ifRevision: 0 })).outcome, 'unchanged');
  const revise = () => other.createPlant({ id: 2n, name: 'elm' }, { ifRevision: 1 });
  const replaced = new PlantStore({ ...service, fetch: losing(revise) });
  const error = await thrownBy(() => replaced.createPlant({ id: 2n, name: 'oak' }, { ifRevision: 0 }));
  assert.ok(error instanceof PlantChanged);
  assert.deepEqual([error.expectedRevision, error.storedRevision], [0, 2]);
  assert.match(error.message, /has revision 2, not 0; .* an earlier attempt was not confirmed/);
});

test('the client notices a service that ignores ifRevision, and takes a 412 without proof as no PlantChanged', async () => {
  const revised = { ...STORED_HEADERS, 'Plant-Revision': '3', 'Plant-Outcome': 'revised' };
  const changed = { 'Plant-Id': '9007199254740993', 'Plant-Revision': '3' };
  const body = errorBody(41201, 'no');
  for (const [ifRevision, response, says] of [
    [
      0,
      [200, revised, MONSTERA_JSON],
      /200 for revision 3, .* ignores If-Plant-Revision, and the plant was stored/,
    ],
    [1, [200, revised, MONSTERA_JSON], /does not follow revision 1/],
    [2, [200, revised, MONSTERA_JSON], undefined],
    [0, [200, { ...revised, 'Plant-Outcome': 'unchanged' }, MONSTERA_JSON], undefined],
    [0, [412, { ...changed, 'Plant-Id': '1' }, body], /^no$/],
    [0, [412, { 'Plant-Id': '9007199254740993' }, body], /^no$/],
    [undefined, [412, changed, body], /^no$/],
  ] satisfies [number | undefined, Reply, RegExp | undefined][]) {
    await using server = await startServer([response]);
    const sending = clientOf(server.url).createPlant(MONSTERA, { ifRevision });
    if (says === undefined) await sending;
    else {
      const error = await thrownBy(() => sending);
      assert.ok(error instanceof PlantStoreError && !(error instanceof PlantChanged));
      assert.match(error.message, says);
    }
  }
});

test('the client sends many plants until the inputs fail, and yields the results of those before', async () => {
  await using server = await startServer([[503], 'stored']);
  const failure = new Error('the file ended early');
  function* inputs(): Generator<PlantInput> {
    yield MONSTERA;
    throw failure;
  }
  const [results, thrown] = await readAll(clientOf(server.url).createPlants(inputs()));
  assert.deepEqual([results.map(({ plant }) => plant?.outcome), thrown], [['created'], failure]);
});

test('the client sends many plants and yields errors of one plant, and throws errors of all plants', async () => {
  for (const { number, retry } of Object.values(ERRORS)) {
    await using server = await startServer([errorReply(number), 'stored']);
    const store = clientOf(server.url, { retryForMs: 0 });
    const [[first, second], thrown] = await readAll(store.createPlants([MONSTERA, MONSTERA]));
    if ([40001, 40002, 40003, 41201, 41301, 50001, 50304].includes(number)) {
      assert.deepEqual([first?.error?.error, second?.plant?.outcome], [number, 'created']);
    } else {
      assert.ok(thrown instanceof PlantStoreError);
      assert.deepEqual([thrown.error, thrown.canRetry], [number, retry || number === 40000]);
    }
  }
});

/** The first request gets the last response. */
const ENDS: [what: string, second: Reply, options: () => CreatePlantsOptions][] = [
  ['an error of all plants', errorReply(40102), () => ({})],
  [
    'a listener that throws',
    [503],
    () => ({
      onRetry: error => {
        throw error;
      },
    }),
  ],
  [
    'an aborted signal',
    [503],
    () => {
      const ending = new AbortController();
      return { signal: ending.signal, onRetry: error => ending.abort(error) };
    },
  ],
];
for (const [what, second, options] of ENDS) {
  test(`the client sends many plants until ${what}: it sends no further plant, and yields the results of sent plants first`, async () => {
    let read = 0;
    const waiting: Post[] = [];
    await using slow = await startFaulty(post => {
      if (waiting.push(post) === 2) reply(second, post);
    });
    /** Passes the first response on some time after the client has read the second one. */
    const fetchInOrder: typeof fetch = async (...request) => {
      const response = await fetch(...request);
      const body = await response.text();
      if (response.status !== 200) setImmediate(() => setImmediate(() => waiting[0]!.store()));
      return new Response(body, response);
    };
    function* inputs(): Generator<PlantInput> {
      for (; ; read++) yield read === 0 ? MONSTERA : { id: 1, name: 'a' };
    }
    const client = clientOf(slow.url, { fetch: fetchInOrder });
    const [results, thrown] = await readAll(client.createPlants(inputs(), options()));
    assert.ok(thrown instanceof PlantStoreError);
    assert.deepEqual(
      results.map(({ plant }) => plant?.id),
      [MONSTERA.id],
    );
    assert.equal(waiting.length, 2);
    assert.ok(read <= 64, `${read} read`);
  });
}

test('the client sends many plants and counts retryForMs from the last plant that was stored or rejected', async () => {
  const plants = 5;
  const replies = Array<Reply[]>(plants).fill([[503, { 'Retry-After': '1' }], 'stored']);
  await using limited = await startServer(replies.flat());
  // Each takes at least a second: plants with one id are sent one after the other.
  const inputs = Array<PlantInput>(plants).fill(MONSTERA);
  const retried: number[] = [];
  const store = clientOf(limited.url, { retryForMs: 4_000 });
  const onRetry = ({ status }: PlantStoreError): number => retried.push(status!);
  const [results, thrown] = await readAll(store.createPlants(inputs, { onRetry }));
  assert.deepEqual([results.length, thrown], [plants, undefined]);
  assert.deepEqual(retried, new Array(plants).fill(503));
});
