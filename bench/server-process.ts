import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { text as readText } from 'node:stream/consumers';
import { setTimeout as wait } from 'node:timers/promises';
import { freePort } from '../test/harness/free-port.ts';

/** A tick of the kernel is 10 ms, see proc_pid_stat(5). */
const TICK_US = 10_000;
const POLL_INTERVAL_MS = 3;
const START_MAX_MS = 30_000;
const STOP_MAX_MS = 15_000;

/** A server process that responds. */
export interface ServerProcess {
  url: string;
  /** From its start to its first 200. */
  startMs: number;
  pid: number;
  /** Sends SIGTERM, and SIGKILL after a timeout. */
  stop(): Promise<void>;
}

/**
 * Starts a server and waits until it accepts a plant.
 *
 * @param command returns the program and its arguments for a port
 * @throws with its messages, if it ends or does not respond
 */
export async function startServer(
  command: (port: number) => [program: string, ...args: string[]],
  token: string,
): Promise<ServerProcess> {
  const port = await freePort();
  const [program, ...args] = command(port);
  const sinceMs = performance.now();
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { PATH: process.env.PATH } });
  const ended = once(child, 'exit').catch(() => {});
  const output = Promise.all([readText(child.stdout), readText(child.stderr)]);
  const stop = () => end(child, ended);
  const url = `http://127.0.0.1:${port}`;
  try {
    await firstResponse(url, token, child);
  } catch (error) {
    await stop();
    throw new Error(
      `${program} ${args[0]}: ${(error as Error).message}: ${(await output).join('').slice(-2000)}`,
    );
  }
  return { url, startMs: performance.now() - sinceMs, pid: child.pid!, stop };
}

/** The CPU time of a process, its threads and its ended children, in µs; 0 if it has ended. */
export function cpuUsOf(pid: number): number {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return 0;
  }
  // The name of the program, which can contain any character, ends with the last parenthesis.
  const ticks = stat.slice(stat.lastIndexOf(')')).split(' ').slice(12, 16);
  return ticks.reduce((sum, each) => sum + Number(each), 0) * TICK_US;
}

async function firstResponse(url: string, token: string, child: ChildProcess): Promise<void> {
  const untilMs = performance.now() + START_MAX_MS;
  let failure: unknown;
  child.on('error', error => {
    failure = error;
  });
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  for (let id = 1; performance.now() < untilMs; id++) {
    const body = `{"id":${id},"name":"Monstera deliciosa","tag":"first"}`;
    const response = await fetch(`${url}/plants`, { method: 'POST', headers, body }).catch(() => {});
    const text = await response?.text();
    if (response?.ok) return;
    if (response !== undefined) throw new Error(`the response was ${response.status} ${text}`);
    if (failure !== undefined) throw failure;
    if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}`);
    await wait(POLL_INTERVAL_MS);
  }
  throw new Error(`no response within ${START_MAX_MS} ms`);
}

async function end(child: ChildProcess, ended: Promise<unknown>): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  child.kill('SIGTERM');
  const late = setTimeout(() => child.kill('SIGKILL'), STOP_MAX_MS);
  await ended;
  clearTimeout(late);
}
