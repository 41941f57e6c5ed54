import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { text as readText } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const REQUESTS_SCRIPT = fileURLToPath(new URL('./create-requests.lua', import.meta.url));
const LOAD_CLIENT = fileURLToPath(new URL('./load-client.ts', import.meta.url));

/** The requests of a load, and their rate and number of connections. */
export interface LoadSettings {
  /** Without the path. */
  url: string;
  token: string;
  connections: number;
  seconds: number;
  /** The ids of new plants: ascending (the default), or random with 19 digits. */
  ids?: 'ascending' | 'random';
  /** Ends the load, which then fails with an `AbortError`. */
  signal?: AbortSignal;
}

/** The result of a load. Latencies are in µs. */
export interface LoadResult {
  requests: number;
  ratePerSecond: number;
  p50Us: number;
  p99Us: number;
  maxUs: number;
  /** Requests with an error response, or with a connection that was cut. */
  failures: number;
}

/** A load at a fixed rate. */
export interface OpenLoopResult extends LoadResult {
  /** Requests without a response some time after the last was due. The quantiles exclude them. */
  pending: number;
  /** Results of the requests that were due in each interval, if the settings have an interval. */
  timeline: { atMs: number; p50Us: number | null; maxUs: number | null; failures: number }[];
}

/** The settings that the load process reads. */
export interface LoadOrder extends Required<Omit<LoadSettings, 'signal'>> {
  /** Ascending ids begin after this one, which has 16 digits. */
  firstId: number;
  /** Makes the load an open loop. */
  ratePerSecond?: number;
  timelineIntervalMs?: number;
}

/** @returns the name and version of the tool that drives a closed loop on this machine */
export function loadTool(): string {
  const wrk = wrkVersion();
  return wrk === undefined ? 'test/harness/load-client.ts, because wrk is not installed' : `wrk ${wrk}`;
}

/**
 * Drives a closed loop: each connection sends its next plant as soon as it has the response to the
 * last.
 *
 * wrk corrects its latencies (stats_correct in its source): it adds the requests that a slow one
 * delayed, by the mean rate of the connection. Without wrk, a client in Node drives the loop. It
 * uses several times as much CPU time.
 *
 * @returns the number and rate of requests with the response 200; the latencies include all
 *   requests
 * @throws if the load tool fails or the signal ends it
 */
export async function runLoad(settings: LoadSettings): Promise<LoadResult> {
  const { signal } = settings;
  const order = orderOf(settings);
  if (wrkVersion() === undefined) return await runScript<LoadResult>(LOAD_CLIENT, order, signal);
  const result = await runWrk(order, signal);
  // A failed request is not a create, even if its response was fast.
  const created = Math.max(result.requests - result.failures, 0);
  return {
    ...result,
    requests: created,
    ratePerSecond: (result.ratePerSecond * created) / result.requests,
  };
}

/**
 * Drives an open loop: it sends plants at a fixed rate and does not wait for earlier responses. A
 * latency counts from the time when the plant was due, so it includes the wait for a free
 * connection.
 *
 * @throws if the load client fails or the signal ends it
 */
export async function runOpenLoop(
  settings: LoadSettings & { ratePerSecond: number; timelineIntervalMs?: number },
): Promise<OpenLoopResult> {
  const { ratePerSecond, timelineIntervalMs, signal } = settings;
  const order = { ...orderOf(settings), ratePerSecond, timelineIntervalMs };
  return await runScript(LOAD_CLIENT, order, signal);
}

function orderOf({ url, token, connections, seconds, ids = 'ascending' }: LoadSettings): LoadOrder {
  // The time in µs: no two runs use the same id.
  return { url, token, connections, seconds, ids, firstId: Date.now() * 1000 };
}

async function runWrk(order: LoadOrder, signal: AbortSignal | undefined): Promise<LoadResult> {
  const { url, token, connections, seconds, ids, firstId } = order;
  const env = { PATH: process.env.PATH, TOKEN: token, FIRST_ID: String(firstId), IDS: ids };
  const args = ['-t1', `-c${connections}`, `-d${seconds}s`, '-s', REQUESTS_SCRIPT, url];
  const { stdout } = await promisify(execFile)('wrk', args, { env, signal });
  const line = /^result (.*)$/m.exec(stdout)?.[1];
  if (line === undefined) throw new Error(`wrk printed no result:\n${stdout}`);
  const { durationUs, ...result } = JSON.parse(line);
  return { ...result, ratePerSecond: (result.requests * 1e6) / durationUs };
}

/**
 * Runs a program that reads an order as JSON from stdin and prints a result as JSON.
 *
 * @param signal ends the program
 * @throws if it ends without a result, or by the signal
 */
export async function runScript<Result>(
  script: string,
  order: object,
  signal: AbortSignal | undefined,
): Promise<Result> {
  const child = spawn(process.execPath, [script], { stdio: ['pipe', 'pipe', 'inherit'], signal });
  // A program that ends before it reads its order has no result, which is reported below.
  child.stdin.on('error', () => {}).end(JSON.stringify(order));
  const [output] = await Promise.all([readText(child.stdout), once(child, 'close')]);
  if (output === '') throw new Error(`${script} ended without a result`);
  return JSON.parse(output);
}

let foundWrk: { version: string | undefined } | undefined;

/** `wrk -v` prints its version and usage, and exits with an error. */
function wrkVersion(): string | undefined {
  foundWrk ??= {
    version: /^wrk (?:debian\/)?([0-9.]+)/.exec(
      spawnSync('wrk', ['-v'], { encoding: 'utf8' }).stdout ?? '',
    )?.[1],
  };
  return foundWrk.version;
}
