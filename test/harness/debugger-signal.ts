import assert from 'node:assert/strict';
import { setTimeout as wait } from 'node:timers/promises';
import { freePort } from './free-port.ts';
import { type StartOptions, sendPlant, startServe } from './program.ts';

/** Node opens its debugger port within a few milliseconds after the signal. */
const OPENING_MS_MAX = 500;

/**
 * Asserts that SIGUSR1, which opens a debugger port in other Node programs, does not in a service.
 */
export async function assertNoDebugger(database: string, options: StartOptions): Promise<void> {
  const port = await freePort();
  const env = { ...options.env, NODE_OPTIONS: `--inspect-port=${port}` };
  await using serve = await startServe(database, [], { ...options, env });
  serve.child.kill('SIGUSR1');
  await wait(OPENING_MS_MAX);
  await assert.rejects(fetch(`http://127.0.0.1:${port}/json/version`), TypeError, 'a debugger listens');
  assert.equal(await sendPlant(serve.url, serve.token, 1n), 200);
  const { exitCode, stderr } = await serve.stop('SIGTERM');
  assert.equal(exitCode, 0);
  assert.doesNotMatch(stderr, /debugger/i);
}
