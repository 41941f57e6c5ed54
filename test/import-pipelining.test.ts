import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { INTERIM_ANSWERS_MAX, NotHttp, readHttpAnswer } from '../src/cli/import/http-answer.ts';
import { ANSWER_BYTES_MAX, ANSWER_WAIT_MS } from '../src/cli/import/limits.ts';
import { PipelinedRequests } from '../src/cli/import/pipelined-requests.ts';
import type { Answer } from '../src/cli/import/plant-answer.ts';
import { type Finished, runProgram } from './program.ts';

const STORED = 'HTTP/1.1 200 OK\r\nPlant-Outcome: created\r\nContent-Length: 2\r\n';

/** What has arrived on one connection and is not answered. */
interface Arrived {
  /** Of the connections, counted from 1. */
  connection: number;
  socket: Socket;
  /** Requests with their bodies; the script takes out those that it answers. */
  requests: string[];
}

/** Answers `count` requests as a plant store does, in one write. */
function store({ socket, requests }: Arrived, count: number, field = ''): void {
  const answers = requests
    .splice(0, count)
    .map(request => `${STORED}Plant-Id: ${idOf(request)}\r\n${field}\r\n{}`);
  socket.write(answers.join(''));
}

function idOf(request: string): string {
  return /"id":([0-9]+)/.exec(request)![1]!;
}

/** Runs a server that does with the bytes of a connection what the script says, for as long as it is used. */
async function withServer<Result>(
  script: (arrived: Arrived) => void,
  use: (url: string) => Promise<Result>,
): Promise<Result & { connections: number }> {
  let connections = 0;
  const server = createServer(socket => {
    const arrived: Arrived = { connection: ++connections, socket, requests: [] };
    let rest = '';
    socket.on('error', () => {});
    socket.setEncoding('utf8').on('data', (piece: unknown) => {
      const parts = (rest + piece).split(/(?=POST \/plants HTTP\/1\.1\r\n)/);
      rest = parts.at(-1)!.endsWith('}') ? '' : parts.pop()!;
      arrived.requests.push(...parts);
      if (parts.length > 0) script(arrived);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const result = await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    return { ...result, connections };
  } finally {
    server.close();
    await once(server, 'close');
  }
}

/** Imports rows whose ids count from 1. */
async function importRows(
  rows: number,
  script: (arrived: Arrived) => void,
): Promise<Finished & { connections: number }> {
  const folder = await mkdtemp(join(tmpdir(), 'plant-store-pipelining-'));
  try {
    const file = join(folder, 'plants.csv');
    const lines = Array.from({ length: rows }, (_, index) => `${index + 1},name ${index + 1}\n`);
    await writeFile(file, `id,name\n${lines.join('')}`);
    return await withServer(script, url =>
      runProgram(['import', '--url', url, '--token', 'plant_test', file], { cwd: folder }),
    );
  } finally {
    await rm(folder, { recursive: true });
  }
}

function openRequests(url: string): PipelinedRequests {
  return new PipelinedRequests({ url: new URL(url), token: 'plant_test' }, 64);
}

function answerTo(requests: PipelinedRequests, body: string): Promise<Answer> {
  return new Promise(resolve => requests.post(body, resolve));
}

/** Lets what was written on loopback arrive, without a timer. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise(resolve => setImmediate(resolve));
}

/** Posts plants whose ids count from 1, 64 at a time. @returns how many of each kind of answer came */
async function postPlants(url: string, count: number): Promise<Record<string, number>> {
  const requests = openRequests(url);
  const { promise, resolve } = Promise.withResolvers<void>();
  const kinds: Record<string, number> = {};
  let sent = 0;
  let answered = 0;
  const post = (): void => {
    if (sent === count) return;
    requests.post(`{"id":${++sent},"name":"a"}`, ({ kind }) => {
      kinds[kind] = (kinds[kind] ?? 0) + 1;
      if (++answered === count) resolve();
      else post();
    });
  };
  for (let inFlight = 0; inFlight < 64; inFlight++) post();
  await promise;
  await requests.close();
  return kinds;
}

suite('import over connections that carry many plants', { concurrency: 4 }, () => {
  test('a connection carries one plant until it has answered, and then many', async () => {
    const first = new Set<number>();
    let most = 0;
    const { stdout, connections } = await importRows(2000, arrived => {
      const count = arrived.requests.length;
      if (!first.has(arrived.connection)) assert.equal(count, 1);
      first.add(arrived.connection);
      most = Math.max(most, count);
      // Later, so that whatever else is sent at once has arrived.
      setTimeout(() => store(arrived, arrived.requests.length), 5);
    });
    assert.match(stdout, /^2,000 rows: 2,000 created/);
    assert.ok(most > 8, `at most ${most} at the same time on a connection`);
    assert.ok(connections <= 64, `${connections} connections`);
  });

  test('behind a gateway that closes the connection after each answer every plant is sent once', async () => {
    const sent: string[] = [];
    const { stdout, connections } = await importRows(500, arrived => {
      sent.push(...arrived.requests.map(idOf));
      store(arrived, 1, 'Connection: close\r\n');
      arrived.socket.end();
    });
    assert.match(stdout, /^500 rows: 500 created/);
    assert.equal(sent.length, 500);
    assert.equal(connections, 500);
  });

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
    const { kinds } = await withServer(script, async url => ({ kinds: await postPlants(url, 2000) }));
    // Whoever posts them hears nothing of it.
    assert.deepEqual(kinds, { stored: 2000 });
    assert.equal(stored.length, 2000);
    assert.equal(new Set(stored).size, 2000);
  });

  test('a connection cut in the middle of an answer leads to the plants behind it being sent again', async () => {
    const answered = new Set<string>();
    let pieces = 0;
    const { stdout, exitCode } = await importRows(2000, arrived => {
      const { requests, socket } = arrived;
      if (++pieces % 17 !== 0) {
        for (const request of requests) answered.add(idOf(request));
        return store(arrived, requests.length);
      }
      answered.add(idOf(requests[0]!));
      store(arrived, 1);
      socket.end(`${STORED}Plant-I`);
    });
    assert.match(stdout, /^2,000 rows: 2,000 created/);
    assert.equal(exitCode, 0);
    assert.equal(answered.size, 2000);
  });

  test('a server that speaks something else is named', async () => {
    const { stderr, exitCode } = await importRows(10, ({ socket }) =>
      socket.write('SSH-2.0-OpenSSH\r\n\r\n'),
    );
    assert.match(stderr, /^plant-store: no service answers at http:\/\/127\.0\.0\.1:[0-9]+\/ \(EPROTO\); /);
    assert.equal(exitCode, 1);
  });
});

suite('a server that answers as no plant store does', () => {
  const SURPLUS: [string, string][] = [
    ['a second answer', `${STORED}\r\n{}`],
    ['a second answer that closes the connection', `${STORED}Connection: close\r\n\r\n{}`],
    ['a refusal', 'HTTP/1.1 400 Bad Request\r\nContent-Length: 29\r\n\r\n{"error":40002,"message":"no"}'],
  ];
  for (const [what, surplus] of SURPLUS) {
    test(`${what} is not taken for that to a request that was not written yet`, {
      timeout: 10_000,
    }, async () => {
      let received = 0;
      const script = ({ requests, socket }: Arrived): void => {
        received += requests.length;
        socket.end(`${STORED}\r\n{}${surplus}`);
      };
      const { answers } = await withServer(script, async url => {
        const requests = openRequests(url);
        const first = await new Promise<[Answer, Promise<Answer>]>(resolve => {
          // The second is posted before the first's answer is dealt with, as with two rows of the same id.
          requests.post('{"id":1}', answer => resolve([answer, answerTo(requests, '{"id":1}')]));
        });
        const second = await first[1];
        await requests.close();
        return { answers: [first[0].kind, second] };
      });
      assert.deepEqual(answers, ['stored', { kind: 'no answer', cause: 'EPROTO' }]);
      assert.equal(received, 1);
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
        const requests = openRequests(url);
        const answering = answerTo(requests, '{"id":1}');
        const socket = await arrived;
        socket.write(start);
        for (let step = 0; step < 4; step++) {
          socket.write(drop);
          await turns();
          context.mock.timers.tick(ANSWER_WAIT_MS / 4);
        }
        const answer = await answering;
        await requests.close();
        return { answer };
      });
      assert.deepEqual(answer, { kind: 'no answer', cause: 'ETIMEDOUT' });
    });
  }

  test('each plant has the whole time for its answer, also behind others', {
    timeout: 10_000,
  }, async context => {
    context.mock.timers.enable({ apis: ['setTimeout'] });
    const arrivals: Arrived[] = [];
    const { kinds } = await withServer(
      arrived => void arrivals.push(arrived),
      async url => {
        const requests = openRequests(url);
        const kinds: string[] = [];
        for (let id = 1; id <= 4; id++) {
          const answering = answerTo(requests, `{"id":${id}}`);
          while (arrivals.length < id) await turns();
          context.mock.timers.tick(ANSWER_WAIT_MS - 1);
          store(arrivals.at(-1)!, 1);
          kinds.push((await answering).kind);
        }
        await requests.close();
        return { kinds };
      },
    );
    assert.deepEqual(kinds, ['stored', 'stored', 'stored', 'stored']);
  });
});

suite('reading an HTTP answer', () => {
  const WHOLE: [string, string, Partial<ReturnType<typeof readHttpAnswer>>][] = [
    ['a length', 'HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 3\r\n\r\nabc', { status: 200, body: 'abc' }],
    ['no reason', 'HTTP/1.1 503\r\ncontent-length:0\r\n\r\n', { status: 503, body: '' }],
    [
      'chunks',
      'HTTP/1.1 400 Bad\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n',
      { status: 400, body: 'abc0123456789' },
    ],
    [
      'chunks and a trailer',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nB: c\r\n\r\n',
      { body: 'a' },
    ],
    [
      'an interim answer before it',
      'HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx',
      { status: 200, body: 'x', isLast: false },
    ],
    ['no body', 'HTTP/1.1 204 No Content\r\n\r\n', { status: 204, body: '', isLast: false }],
    [
      'a close among other words',
      'HTTP/1.1 200 OK\r\nConnection: x\r\nConnection: Close\r\nContent-Length: 0\r\n\r\n',
      { isLast: true },
    ],
    ['HTTP/1.0', 'HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n', { isLast: true }],
  ];
  for (const [what, text, expected] of WHOLE) {
    test(`${what}: read at its last byte, wherever it was cut, and no further`, () => {
      for (let length = 0; length < text.length; length++) {
        assert.equal(readHttpAnswer(text.slice(0, length), 0, false), undefined, `at ${length}`);
      }
      const answer = readHttpAnswer(`before${text}HTTP/1.1`, 6, false)!;
      assert.partialDeepStrictEqual(answer, { ...expected, end: 6 + text.length });
    });
  }

  test('a body without a length ends with the connection', () => {
    const text = 'HTTP/1.1 502 Bad Gateway\r\n\r\n<p>';
    assert.equal(readHttpAnswer(text, 0, false), undefined);
    assert.partialDeepStrictEqual(readHttpAnswer(text, 0, true)!, { status: 502, body: '<p>', isLast: true });
  });

  test('names of headers are in lower case, and repeated ones are joined', () => {
    const text =
      'HTTP/1.1 200 OK\r\nPlant-Id: 1\r\nplant-id:\t2 \r\n__proto__: x\r\nContent-Length: 0\r\n\r\n';
    const { headers } = readHttpAnswer(text, 0, false)!;
    assert.deepEqual({ ...headers }, { 'plant-id': '1, 2', ['__proto__']: 'x', 'content-length': '0' });
  });

  const head = (fields: string): string => `HTTP/1.1 200 OK\r\n${fields}\r\n\r\n`;
  test('the blanks around a value are not part of it, those within are', () => {
    const { headers } = readHttpAnswer(head('A: \t b \t c\t \r\nB: \t \r\nContent-Length: 0'), 0, false)!;
    assert.deepEqual({ ...headers }, { a: 'b \t c', b: '', 'content-length': '0' });
  });

  test('a value with many blanks is read, or refused, in a moment', { timeout: 10_000 }, () => {
    const blanks = ' '.repeat(200_000);
    const startMs = performance.now();
    const { headers } = readHttpAnswer(head(`X: a${blanks}b\r\nContent-Length: 0`), 0, false)!;
    assert.throws(() => readHttpAnswer(head(`X:${' '.repeat(3000)}\n`), 0, false), NotHttp);
    // Where each blank leads to another look at all others, minutes.
    assert.ok(performance.now() - startMs < 1000, `${performance.now() - startMs} ms`);
    assert.equal(headers.x, `a${blanks}b`);
  });

  const INTERIM = 'HTTP/1.1 100\r\n\r\n';

  test('a few interim answers are read past, and more are no answer', () => {
    const text = `${INTERIM.repeat(INTERIM_ANSWERS_MAX)}${head('Content-Length: 0')}`;
    assert.equal(readHttpAnswer(text, 0, false)!.status, 200);
    assert.throws(() => readHttpAnswer(INTERIM + text, 0, false), NotHttp);
  });

  const MALFORMED: [string, string][] = [
    ['another protocol', 'SSH-2.0\r\n\r\n'],
    ['HTTP/2', 'HTTP/2 200\r\n\r\n'],
    ['a change of protocol', 'HTTP/1.1 101 Switching Protocols\r\n\r\n'],
    ['two lengths', head('Content-Length: 1\r\nContent-Length: 1')],
    ['a length that is none', head('Content-Length: -1')],
    ['a length and chunks', head('Content-Length: 1\r\nTransfer-Encoding: chunked')],
    ['an unknown coding', head('Transfer-Encoding: gzip, chunked')],
    ['a folded line', head('A: b\r\n c: d')],
    ['a line without a colon', head('A b')],
    ['a bare line feed', head('A: b\nC: d')],
    ['a bare carriage return', head('A: b\rC: d')],
    ['a NUL in a value', head('A: b\0')],
    ['a size of a chunk that is none', `${head('Transfer-Encoding: chunked')}x\r\n`],
    ['a chunk that is longer than it says', `${head('Transfer-Encoding: chunked')}1\r\nabcd\r\n`],
    ['an endless head', `HTTP/1.1 200 OK\r\n${'A: b\r\n'.repeat(ANSWER_BYTES_MAX / 6)}`],
    ['a flood of interim answers', INTERIM.repeat(20_000)],
    ['interim answers without end', `HTTP/1.1 102 ${'x'.repeat(ANSWER_BYTES_MAX / 4)}\r\n\r\n`.repeat(4)],
    ['an endless body', `${head('Content-Length: 999999999')}${'x'.repeat(ANSWER_BYTES_MAX)}`],
  ];
  for (const [what, text] of MALFORMED) {
    test(`${what} is no answer`, () => {
      assert.throws(() => readHttpAnswer(text, 0, false), NotHttp);
    });
  }
});
