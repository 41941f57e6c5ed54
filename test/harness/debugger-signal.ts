import assert from 'node:assert/strict';
import { type StartOptions, sendPlant, startServe } from './program.ts';

/**
 * Asserts that SIGUSR1, which opens a debugger port in other Node programs, does not in a service.
 * Node would say on stderr that it opens the port, and does so long before the end of a shutdown.
 */
export async function assertNoDebugger(database: string, options: StartOptions): Promise<void> {
  const env = { ...options.env, NODE_OPTIONS: '--inspect-port=0' };
  await using serve = await startServe(database, [], { ...options, env });
  serve.child.kill('SIGUSR1');
  assert.equal(await sendPlant(serve.url, serve.token, 1n), 200);
  const { exitCode, stderr } = await serve.stop('SIGTERM');
  assert.equal(exitCode, 0);
  assert.doesNotMatch(stderr, /debugger|inspector/i);
}
