import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { dirname } from 'node:path';
import { suite, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { type NewPlant, newPlantJson } from '../src/contract/plant.ts';
import type { LoggedRequest } from './harness/client-log.ts';
import { assertNoDebugger } from './harness/debugger-signal.ts';
import { freePort } from './harness/free-port.ts';
import { LoggingClient } from './harness/logging-client.ts';
import {
  type Finished,
  PROGRAM,
  runProgram,
  type ServeProcess,
  type StartOptions,
  startServe,
} from './harness/program.ts';
import { RandomLoad } from './harness/random-load.ts';
import { SEED } from './harness/seeded-random.ts';
import { sqliteUnderTest } from './harness/store-under-test.ts';
import { faultsIn } from './harness/stored-revisions.ts';

/** The documented time of a shutdown. */
const SHUTDOWN_MS_MAX = 10_000;

const sqlite = sqliteUnderTest();

/** Ends a service. After {@link SHUTDOWN_MS_MAX} it is killed, and then has no exit code. */
async function stopInTime(serve: ServeProcess, signal: NodeJS.Signals): Promise<Finished> {
  const late = setTimeout(() => serve.child.kill('SIGKILL'), SHUTDOWN_MS_MAX);
  const finished = await serve.stop(signal);
  clearTimeout(late);
  return finished;
}

/** @param sent the start of a request; may be empty */
async function openConnection({ url }: ServeProcess, sent = ''): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  socket.write(sent);
  return socket;
}

/** @returns a connection on which half of a request was sent, and the other half */
async function openHalfSent(serve: ServeProcess, plant: NewPlant): Promise<[slow: Socket, rest: string]> {
  const body = newPlantJson(plant);
  const slow = await openConnection(
    serve,
    `POST /plants HTTP/1.1\r\nHost: plants\r\nAuthorization: Bearer ${serve.token}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, 30)}`,
  );
  return [slow, body.slice(30)];
}

/** The text that arrives until the other side ends the connection. */
async function textUntilEnd(socket: Socket): Promise<string> {
  let text = '';
  for await (const chunk of socket.setEncoding('utf8')) text += chunk;
  return text;
}

test('SIGTERM under load, and SIGHUP before it: every request gets a response, and the process ends with 0', async () => {
  console.log(`repeat with PLANT_STORE_TEST_SEED=${SEED}`);
  const database = await sqlite.newDatabase();
  await using serve = await startServe(database);
  const log: LoggedRequest[] = [];

  // Without the signal, idle connections stay open for 65 s.
  const idle = Array.from({ length: 4 }, () => new LoggingClient(serve.url, serve.token, log));
  for (const client of idle) await client.send({ id: 1n, name: 'then silent' });
  const silent = await openConnection(serve);
  const load = new RandomLoad(serve.url, serve.token, log, SEED);
  serve.child.kill('SIGHUP');
  await load.inFlight();

  const { exitCode, stderr } = await stopInTime(serve, 'SIGTERM');
  await Promise.all([load.ended(), ...idle.map(client => client.close())]);
  silent.destroy();

  assert.equal(exitCode, 0, stderr);
  const pending = log.filter(({ response }) => response === undefined || response.status >= 500);
  assert.deepEqual(pending, []);
  assert.deepEqual(await faultsIn(database, log), []);
});

test('a second service on the same database ends with one line, and the first continues', async () => {
  const database = await sqlite.newDatabase();
  await using serve = await startServe(database);
  // Also with the addresses of the first, as with two runs of `npm start`.
  for (const listen of ['127.0.0.1:0', new URL(serve.url).host]) {
    const args = ['serve', '--database', database, '--listen', listen, '--ops', '127.0.0.1:0'];
    const { exitCode, stdout, stderr } = await runProgram(args);
    assert.deepEqual([exitCode, stdout], [1, '']);
    assert.match(stderr, /^plant-store: another plant-store service is running on .*; stop it first.*\n$/);
  }
  const log: LoggedRequest[] = [];
  const client = new LoggingClient(serve.url, serve.token, log);
  assert.equal((await client.send({ id: 1n, name: 'undisturbed' })).response?.status, 200);
  await client.close();
  await serve.stop('SIGKILL');
  // The end of a process releases its lock, also after SIGKILL.
  await using _again = await startServe(database);
});

test('wrong codes for the console, which wait for the next lookup, hold up no SIGTERM', async () => {
  const ops = `http://127.0.0.1:${await freePort()}`;
  await using serve = await startServe(await sqlite.newDatabase(), ['--ops', ops.replace('http://', '')]);
  const options = { method: 'POST', headers: { Origin: ops }, body: '{"code":"wrong"}' };
  const attempts = Array.from({ length: 10 }, () => fetch(`${ops}/console/api/session`, options));
  const ended = Promise.allSettled(attempts);
  assert.equal((await Promise.race(attempts)).status, 403);
  const startedAt = performance.now();
  assert.equal((await stopInTime(serve, 'SIGTERM')).exitCode, 0);
  assert.ok(performance.now() - startedAt < 5_000);
  await ended;
});

/** A second Ctrl-C while a request is in flight. Under npm one Ctrl-C can arrive twice. */
const SECOND_SIGNALS: [laterMs: number, exitCode: number | null, response: RegExp][] = [
  [20, 0, /^HTTP\/1\.1 200 /],
  [1_000, null, /^$/],
];

/** The ways to start the program with npm and those of the documents. */
const FORMS: [name: string, options: StartOptions][] = [
  ['npx plant-store', { executable: PROGRAM, env: { PATH: dirname(process.execPath) } }],
  ['npm start', { nodeArgs: ['--disable-sigusr1'] }],
  ['a command without the flag', {}],
];

// Concurrent, since most of them wait.
suite('a service with a signal', { concurrency: true }, () => {
  for (const [laterMs, expectedCode, expectedResponse] of SECOND_SIGNALS)
    test(`a second SIGINT after ${laterMs} ms ${expectedCode === null ? 'ends it at once' : 'changes nothing'}`, async () => {
      await using serve = await startServe(await sqlite.newDatabase());
      const [slow, rest] = await openHalfSent(serve, { id: 1n, name: 'half of it was sent' });
      const response = textUntilEnd(slow);
      const stopped = stopInTime(serve, 'SIGINT');
      await wait(laterMs);
      serve.child.kill('SIGINT');
      await wait(500);
      slow.write(rest);
      assert.equal((await stopped).exitCode, expectedCode);
      assert.match(await response, expectedResponse);
    });

  for (const [name, options] of FORMS)
    test(`SIGUSR1 opens no debugger and changes nothing: ${name}`, async () => {
      await assertNoDebugger(await sqlite.newDatabase(), options);
    });
});
