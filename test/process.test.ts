import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LoggedRequest } from './harness/client-log.ts';
import { assertNoDebugger } from './harness/debugger-signal.ts';
import { freePort } from './harness/free-port.ts';
import { LoggingClient } from './harness/logging-client.ts';
import {
  assertFailed,
  type Finished,
  runProgram,
  type ServeProcess,
  sendPlant,
  startServe,
} from './harness/program.ts';
import { RandomLoad } from './harness/random-load.ts';
import { RawConnection, requestBytes } from './harness/raw-connection.ts';
import { SEED } from './harness/seeded-random.ts';
import { sqliteUnderTest } from './harness/store-under-test.ts';
import { faultsIn } from './harness/stored-revisions.ts';
import { until } from './harness/until.ts';

/** Far longer than a shutdown, even one that `serve` itself ends with the exit code 1. */
const SHUTDOWN_MAX_MS = 60_000;

const sqlite = sqliteUnderTest();

/** Ends a service. If it hangs, it is killed, and then has no exit code. */
async function stopInTime(serve: ServeProcess, signal: NodeJS.Signals): Promise<Finished> {
  const late = setTimeout(() => serve.child.kill('SIGKILL'), SHUTDOWN_MAX_MS);
  const finished = await serve.stop(signal);
  clearTimeout(late);
  return finished;
}

function openConnection({ url }: ServeProcess): Promise<RawConnection> {
  return RawConnection.open(Number(new URL(url).port));
}

test('SIGTERM under load, and SIGHUP before it: every request gets a response, and the process ends with 0', async () => {
  console.log(`repeat with PLANT_STORE_TEST_SEED=${SEED}`);
  const database = await sqlite.newDatabase();
  await using serve = await startServe(database);
  const log: LoggedRequest[] = [];

  // Without the signal, idle connections stay open for 65 s.
  const idle = Array.from({ length: 4 }, () => new LoggingClient(serve.url, serve.token, log));
  for (const client of idle) await client.send({ id: 1n, name: 'then silent' });
  using _silent = await openConnection(serve);
  const load = new RandomLoad(serve.url, serve.token, log, SEED);
  serve.child.kill('SIGHUP');
  await load.inFlight();

  const { exitCode, stderr } = await stopInTime(serve, 'SIGTERM');
  await Promise.all([load.ended(), ...idle.map(client => client.close())]);

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
    const message = /^plant-store: another plant-store service is running on .*; stop it first.*\n$/;
    assertFailed(await runProgram(args), message);
  }
  assert.equal(await sendPlant(serve.url, serve.token, 1n), 200);
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
  // A shutdown that takes too long ends with 1.
  assert.equal((await stopInTime(serve, 'SIGTERM')).exitCode, 0);
  await ended;
});

for (const isLater of [false, true])
  test(`a second SIGINT ${isLater ? 'some time later ends it at once' : 'at once changes nothing'}`, async () => {
    await using serve = await startServe(await sqlite.newDatabase());
    using slow = await openConnection(serve);
    const request = requestBytes(serve.token);
    slow.write(request.subarray(0, -1));
    const stopped = stopInTime(serve, 'SIGINT');
    await until('it shuts down', () => serve.logged().some(line => line.includes('"signal":"SIGINT"')));
    // Under npm, one Ctrl-C can arrive twice.
    serve.child.kill('SIGINT');
    if (!isLater) slow.write(request.subarray(-1));
    else await until('it has ended', () => !serve.child.kill('SIGINT'));
    const { exitCode } = await stopped;
    assert.deepEqual([exitCode, serve.child.signalCode], isLater ? [null, 'SIGINT'] : [0, null]);
    await slow.ended;
    assert.match(slow.unread, isLater ? /^$/ : /^HTTP\/1\.1 200 /);
  });

test('SIGUSR1 opens no debugger and changes nothing', async () => {
  await assertNoDebugger(await sqlite.newDatabase(), {});
});

test('an older Node is told where npx finds the right one', async () => {
  const version = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.18.1' } })`;
  const nodeArgs = ['--import', `data:text/javascript,${encodeURIComponent(version)}`];
  assertFailed(
    await runProgram(['--version'], { nodeArgs }),
    /^plant-store needs Node 26 or later; this is Node 20\.18\.1\. .* `npx plant-store` uses it in the folder of the checkout\.$/m,
  );
});
