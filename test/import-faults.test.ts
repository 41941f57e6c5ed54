import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { suite, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { type Finished, runProgram, startProgram } from './harness/program.ts';

/** A request as it arrived, with its answer to be given. */
interface Post {
  body: string;
  /** Counted from 1, over all requests. */
  number: number;
  request: IncomingMessage;
  answer(status: number, headers?: Record<string, string>, body?: string): void;
  store(): void;
  cut(): void;
}

const STORED = { 'Plant-Outcome': 'created', 'Plant-Revision': '1' };

/** The Plant that answers a NewPlant whose id comes first. */
function plantOf(body: string): string {
  return body.replace(/"id":[0-9]+,/, '');
}

/** Not a store: a listener that fails as the test tells it to. */
class FaultyServer {
  readonly server: Server;
  readonly bodies: string[] = [];
  #script: (post: Post) => void;

  private constructor(script: (post: Post) => void) {
    this.#script = script;
    this.server = createServer((request, response) => void this.#take(request, response));
  }

  static async start(script: (post: Post) => void, port = 0): Promise<FaultyServer> {
    const faulty = new FaultyServer(script);
    faulty.server.listen(port, '127.0.0.1');
    await once(faulty.server, 'listening');
    return faulty;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await text(request).catch(() => undefined);
    if (body === undefined) return;
    const number = this.bodies.push(body);
    const answer = (status: number, headers: Record<string, string> = {}, answerBody = '{}'): void => {
      response.writeHead(status, headers).end(answerBody);
    };
    this.#script({
      body,
      number,
      request,
      answer,
      store: () => answer(200, { ...STORED, 'Plant-Id': /"id":([0-9]+)/.exec(body)![1]! }, plantOf(body)),
      cut: () => request.socket.destroy(),
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.server.closeAllConnections();
    this.server.close();
    await once(this.server, 'close');
  }
}

/** Runs `import` of a CSV file of so many rows, whose ids count from 1. */
async function importRows(
  port: number,
  rows: number,
  args: string[] = [],
): Promise<Finished & { rejects: string }> {
  return await withFile(rows, async (folder, file) => {
    const rejects = join(folder, 'rejects');
    const finished = await runProgram(['import', ...serviceArgs(port), '--rejects', rejects, ...args, file]);
    return { ...finished, rejects: await readFile(rejects, 'utf8').catch(() => '') };
  });
}

async function withFile<T>(rows: number, use: (folder: string, file: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'plant-store-faults-'));
  try {
    const file = join(folder, 'plants.csv');
    const lines = Array.from({ length: rows }, (_, index) => `${index + 1},name ${index + 1}\n`);
    await writeFile(file, `id,name\n${lines.join('')}`);
    return await use(folder, file);
  } finally {
    await rm(folder, { recursive: true });
  }
}

function serviceArgs(port: number): string[] {
  return ['--url', `http://127.0.0.1:${port}`, '--token', 'plant_test'];
}

function error(number: number, message: string): [Record<string, string>, string] {
  return [{ 'Content-Type': 'application/json' }, JSON.stringify({ error: number, message })];
}

function idOf(body: string): string {
  return /^\{"id":([0-9]+),/.exec(body)![1]!;
}

/**
 * Holds every answer back until no more requests come, so that all that can be in flight is.
 *
 * @param expectedCount until so many have waited together, it is patient: a slow machine sends them late
 * @param onPost is shown what waits for an answer, the newest last
 */
function answerTogether(expectedCount: number, onPost: (waiting: Post[]) => void): (post: Post) => void {
  const waiting: Post[] = [];
  let reached = false;
  return post => {
    onPost([...waiting, post]);
    const held = waiting.push(post);
    reached ||= held >= expectedCount;
    const quietMs = reached ? 20 : 5000;
    setTimeout(() => {
      if (waiting.length === held) for (const each of waiting.splice(0)) each.store();
    }, quietMs);
  };
}

suite('import against a server that is told how to behave', { concurrency: 4 }, () => {
  test('sends what was asked: bearer token, media type, path below the base address', async () => {
    const seen: unknown[] = [];
    await using server = await FaultyServer.start(post => {
      const { authorization, 'content-type': type } = post.request.headers;
      seen.push([post.request.method, post.request.url, authorization, type, post.body]);
      post.store();
    });
    await importRows(server.port, 1, ['--url', `http://127.0.0.1:${server.port}/base/`]);
    assert.deepEqual(seen, [
      ['POST', '/base/plants', 'Bearer plant_test', 'application/json', '{"id":1,"name":"name 1"}'],
    ]);
  });

  test('a row answered 408, 429, 502, 503 or 504, or not at all, is sent again', async () => {
    const troubles = [408, 429, 502, 503, 504];
    await using server = await FaultyServer.start(post => {
      const trouble = troubles[post.number - 2];
      if (post.number === 1) post.cut();
      else if (trouble !== undefined) post.answer(trouble);
      else post.store();
    });
    const { exitCode, stdout, rejects } = await importRows(server.port, 1);
    assert.match(stdout, /^1 row: 1 created, 0 unchanged, 0 revised, 0 rejected/);
    assert.deepEqual([exitCode, rejects], [0, '']);
    assert.equal(server.bodies.length, 7);
  });

  test('no row is lost or counted twice when connections are cut again and again', async () => {
    const stored = new Set<string>();
    await using server = await FaultyServer.start(post => {
      if (post.number % 37 === 0) return post.cut();
      stored.add(post.body);
      post.store();
    });
    const { exitCode, stdout } = await importRows(server.port, 1000);
    assert.match(stdout, /^1,000 rows: 1,000 created, 0 unchanged, 0 revised, 0 rejected/);
    assert.equal(exitCode, 0);
    assert.equal(stored.size, 1000);
  });

  test('Retry-After is obeyed', async () => {
    const times: number[] = [];
    await using server = await FaultyServer.start(post => {
      times.push(performance.now());
      if (post.number === 1) post.answer(503, { 'Retry-After': '2' });
      else post.store();
    });
    assert.equal((await importRows(server.port, 1)).exitCode, 0);
    assert.ok(times[1]! - times[0]! >= 1_990, `sent again after ${times[1]! - times[0]!} ms`);
  });

  test('a service that goes away and comes back is waited for, and both is said once', async () => {
    const stored = new Set<string>();
    const keep = (post: Post): void => {
      stored.add(post.body);
      post.store();
    };
    const { promise: gone, resolve: goAway } = Promise.withResolvers<void>();
    const first = await FaultyServer.start(post => {
      if (post.number < 50) keep(post);
      else goAway();
    });
    const { port } = first;
    const { exitCode, stdout, stderr } = await withFile(500, async (_, file) => {
      const child = startProgram(['import', ...serviceArgs(port), file]);
      const finished = Promise.all([text(child.stdout!), text(child.stderr!), once(child, 'close')]);
      const said = once(child.stderr!, 'data');
      await gone;
      await first[Symbol.asyncDispose]();
      // It is said after a second. Where it never is, the service comes back all the same, and the message is missing below.
      await Promise.race([said, wait(20_000, undefined, { ref: false })]);
      await using _back = await FaultyServer.start(keep, port);
      const [stdout, stderr, [exitCode]] = await finished;
      return { exitCode, stdout, stderr };
    });
    assert.match(
      stderr,
      /^the service does not answer \(\w+\); waiting for up to 5 minutes and trying again…\nthe service is back after [0-9.]+ s; going on\n$/,
    );
    assert.match(stdout, /^500 rows: 500 created/);
    assert.equal(exitCode, 0);
    assert.equal(stored.size, 500);
  });

  test('what is said of one row rejects it, as createPlants says it of one plant, and the others go on', async () => {
    const numbers = [40001, 40002, 40003, 41301];
    await using server = await FaultyServer.start(post => {
      const number = numbers[post.number - 2];
      if (number === undefined) post.store();
      else post.answer(Math.floor(number / 100), ...error(number, 'this one'));
    });
    const { exitCode, stdout, rejects } = await importRows(server.port, 10, ['--in-flight', '1']);
    assert.match(stdout, /^10 rows: 6 created, 0 unchanged, 0 revised, 4 rejected/);
    const rows = numbers.map(
      (number, index) => `${index + 2},name ${index + 2},${index + 2},${number},this one\n`,
    );
    assert.equal(rejects, `id,name,row,error,message\n${rows.join('')}`);
    assert.equal(exitCode, 1);
  });

  test('a row whose answer was lost is not called refused for a further try that was cut on its way', async () => {
    const sentOnce = new Set<string>();
    await using server = await FaultyServer.start(post => {
      const id = idOf(post.body);
      if (id === '2' && !sentOnce.has('2')) post.cut();
      else if (id === '3' && !sentOnce.has('3')) post.cut();
      else if (id === '3') post.answer(400, ...error(40003, 'taken'));
      else if (id === '2' && !sentOnce.has('cut')) {
        sentOnce.add('cut');
        post.answer(400, ...error(40000, 'not valid HTTP'));
      } else post.store();
      sentOnce.add(id);
    });
    const { exitCode, stdout, rejects } = await importRows(server.port, 4, ['--in-flight', '1']);
    assert.match(stdout, /^4 rows: 3 created, 0 unchanged, 0 revised, 1 rejected/);
    const said = 'taken; an earlier try was not confirmed, so the plant may be stored all the same';
    assert.equal(rejects, `id,name,row,error,message\n3,name 3,3,40003,"${said}"\n`);
    assert.equal(exitCode, 1);
  });

  test('what a server says reaches terminal and file without control characters and token', async () => {
    const evil = '\u001b]0;evil\u0007\u009b2J\r\nnext plant_test';
    const shown = String.raw`\u001b]0;evil\u0007\u009b2J\u000d\u000anext <ACCESS_TOKEN>`;
    await using server = await FaultyServer.start(post => {
      if (post.number === 1) post.answer(400, ...error(40002, evil));
      else post.answer(418, ...error(7, evil));
    });
    const { stderr, rejects } = await importRows(server.port, 2, ['--in-flight', '1']);
    assert.equal(rejects, `id,name,row,error,message\n1,name 1,1,40002,${shown}\n`);
    assert.ok(stderr.includes(`418: ${shown}`), stderr);
  });

  test('a row that is answered 500 ten times is rejected, and the others go on', async () => {
    let tries = 0;
    await using server = await FaultyServer.start(post => {
      if (!post.body.includes('"id":3,')) return post.store();
      tries++;
      post.answer(500, ...error(50001, 'the service failed'));
    });
    const { exitCode, stdout, rejects } = await importRows(server.port, 5);
    assert.match(stdout, /^5 rows: 4 created, 0 unchanged, 0 revised, 1 rejected/);
    assert.equal(rejects, 'id,name,row,error,message\n3,name 3,3,50001,the service failed\n');
    assert.equal(exitCode, 1);
    assert.equal(tries, 10);
  });

  test('nothing listens: one line, at once', async () => {
    const server = await FaultyServer.start(() => {});
    const { port } = server;
    await server[Symbol.asyncDispose]();
    const { exitCode, stdout, stderr } = await importRows(port, 1000);
    assert.match(
      stderr,
      /^plant-store: no service answers at http:\/\/127\.0\.0\.1:[0-9]+\/ \(ECONNREFUSED\); start one with: .*\n$/,
    );
    assert.deepEqual([exitCode, stdout], [1, '']);
  });

  const STOPS: [string, (post: Post) => void, RegExp][] = [
    [
      '401',
      post => post.answer(401, ...error(40102, 'unknown')),
      /^plant-store: the service refuses the token; .*\n$/,
    ],
    [
      '404',
      post => post.answer(404, ...error(40401, 'no path')),
      /answers 404 \(no path\); is this the right --url\?\n$/,
    ],
    ['405', post => post.answer(405), /\/: the answer is 405, which no plant store gives here; .*\n$/],
    [
      'a redirect',
      post => post.answer(302, { Location: '/' }),
      /the answer is 302, which no plant store gives here; /,
    ],
    [
      'the 500 of a gateway',
      post => post.answer(500, {}, '<p>no</p>'),
      /the answer is 500, which no plant store gives here; /,
    ],
    ...[40000, 41501, 41502, 43101].map((number): [string, (post: Post) => void, RegExp] => [
      `error ${number}`,
      post => post.answer(Math.floor(number / 100), ...error(number, 'every one')),
      /answers 4[0-9]{2} \(every one\); does a gateway before the service change requests\?\n$/,
    ]),
    [
      '200 of another kind',
      post => post.answer(200),
      /: the answer is 200 without the headers that prove what was stored/,
    ],
    [
      '200 for another plant',
      post => post.answer(200, { ...STORED, 'Plant-Id': '777' }, plantOf(post.body)),
      /: the answer is 200 without the headers that prove what was stored/,
    ],
    [
      '400 of another kind',
      post => post.answer(400, {}, '<p>no</p>'),
      /the answer is 400, which no plant store gives here; /,
    ],
  ];
  for (const [what, script, expected] of STOPS) {
    test(`${what} stops the import with what was stored before counted`, async () => {
      await using server = await FaultyServer.start(post => {
        if (post.number <= 20) post.store();
        else script(post);
      });
      const { exitCode, stdout, stderr, rejects } = await importRows(server.port, 100_000, [
        ...['--in-flight', '8'],
      ]);
      assert.match(stderr, expected);
      assert.equal(rejects, '');
      assert.doesNotMatch(stderr, /\n./);
      assert.match(stdout, /^20 rows: 20 created, 0 unchanged, 0 revised, 0 rejected/);
      assert.equal(exitCode, 1);
      assert.ok(server.bodies.length < 100, `${server.bodies.length} requests were sent`);
    });
  }

  test('exactly as many rows as allowed are in flight', async () => {
    let most = 0;
    await using server = await FaultyServer.start(
      answerTogether(30, waiting => {
        most = Math.max(most, waiting.length);
      }),
    );
    const { stdout } = await importRows(server.port, 200, ['--in-flight', '30']);
    assert.match(stdout, /^200 rows: 200 created/);
    assert.equal(most, 30);
  });

  test('rows with the same id are sent one after the other, in file order, while others overtake', async () => {
    const sent: string[] = [];
    let most = 0;
    await using server = await FaultyServer.start(
      answerTogether(17, waiting => {
        most = Math.max(most, waiting.length);
        const ids = waiting.map(({ body }) => idOf(body));
        assert.equal(new Set(ids).size, ids.length, `in flight together: ${ids}`);
        sent.push(waiting.at(-1)!.body);
      }),
    );
    await withFile(0, async (_, file) => {
      const rows = Array.from({ length: 400 }, (_, row) => `${row % 7 === 0 ? 5 : row + 10},${row}\n`);
      await writeFile(file, `id,name\n${rows.join('')}`);
      const { stdout } = await runProgram(['import', ...serviceArgs(server.port), file]);
      assert.match(stdout, /^400 rows: 400 created/);
    });
    assert.deepEqual(
      sent.filter(body => idOf(body) === '5'),
      Array.from({ length: 58 }, (_, index) => `{"id":5,"name":"${index * 7}"}`),
    );
    assert.ok(most >= 17, `${most} in flight`);
  });

  for (const [signal, expectedCode] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    test(`${signal} ends it in good order: what is in flight is counted, rejects are safe`, async () => {
      const waiting: Post[] = [];
      const { promise: full, resolve: onFull } = Promise.withResolvers<void>();
      await using server = await FaultyServer.start(post => {
        if (post.number === 1) return post.answer(400, ...error(40003, 'taken'));
        if (post.number <= 10) return post.store();
        if (waiting.push(post) === 3) onFull();
      });
      await withFile(10_000, async (folder, file) => {
        const rejects = join(folder, 'rejects');
        const child = startProgram([
          'import',
          ...serviceArgs(server.port),
          // The next row is sent as soon as one is settled; of more rows, a few are waited for.
          ...['--in-flight', '3', '--rejects', rejects, file],
        ]);
        const [stdout, stderr] = [text(child.stdout!), text(child.stderr!)];
        const closed = once(child, 'close');
        await full;
        child.kill(signal);
        // Only once the program has taken the signal do the answers come: nothing tells when, and it waits 5 s for them.
        await wait(1_000);
        for (const post of waiting) post.store();
        assert.deepEqual(await closed, [expectedCode, null]);
        assert.match(await stdout, /^13 rows: 12 created, 0 unchanged, 0 revised, 1 rejected/);
        assert.match(await stderr, /^plant-store: stopped; .*running the import again is harmless\n$/);
        assert.match(
          await readFile(rejects, 'utf8'),
          /^id,name,row,error,message\n1,name 1,1,40003,taken\n$/,
        );
      });
      assert.equal(server.bodies.length, 13);
    });
  }

  test('SIGINT ends it while standard input has nothing to give', async () => {
    const { promise: stored, resolve: onStored } = Promise.withResolvers<void>();
    await using server = await FaultyServer.start(post => {
      post.store();
      onStored();
    });
    const child = startProgram(['import', ...serviceArgs(server.port), '-']);
    const stdout = text(child.stdout!);
    child.stdin!.write('id,name\n1,a\n2,b\n');
    await stored;
    child.kill('SIGINT');
    const [exitCode] = await once(child, 'close');
    assert.equal(exitCode, 130);
    assert.match(await stdout, /^[12] rows?: [12] created/);
  });

  test('while no answer comes, the file is not read on, so memory does not grow with it', async () => {
    const waiting: Post[] = [];
    const { promise: full, resolve: onFull } = Promise.withResolvers<void>();
    let holds = true;
    await using server = await FaultyServer.start(post => {
      if (!holds) return post.store();
      if (waiting.push(post) === 64) onFull();
    });
    const child = startProgram(['import', ...serviceArgs(server.port), '-']);
    const [stdout, closed] = [text(child.stdout!), once(child, 'close')];
    const name = 'x'.repeat(20_000);
    let taken = false;
    child.stdin!.end(
      Array.from({ length: 1_600 }, (_, id) => `{"id":${id},"name":"${name}"}\n`).join(''),
      () => {
        taken = true;
      },
    );
    await full;
    await wait(1_000);
    assert.equal(taken, false, 'all 32 MB were read with 64 rows in flight');
    assert.equal(waiting.length, 64);
    holds = false;
    for (const post of waiting) post.store();
    assert.deepEqual(await closed, [0, null]);
    assert.match(await stdout, /^1,600 rows: 1,600 created/);
  });
});
