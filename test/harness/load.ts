import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { text as readText } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const REQUESTS_SCRIPT = fileURLToPath(new URL('./create-requests.lua', import.meta.url));
const LOAD_CLIENT = fileURLToPath(new URL('./load-client.ts', import.meta.url));

/** What is sent, and how. */
export interface LoadSettings {
  /** Without the path. */
  url: string;
  token: string;
  connections: number;
  seconds: number;
  /** Of new plants: one more each time (the default), or drawn from 19 digits. */
  ids?: 'ascending' | 'random';
  /** Ends the load: it then fails with an `AbortError`. */
  signal?: AbortSignal;
}

/** What a load saw. Latencies are in µs. */
export interface LoadResult {
  requests: number;
  ratePerSecond: number;
  p50Us: number;
  p99Us: number;
  maxUs: number;
  /** Answered with an error, or cut off. */
  failures: number;
}

/** A load at a fixed rate. */
export interface OpenLoopResult extends LoadResult {
  /** Those that had no answer a while after the last was due; they have no latency, and the quantiles are of the others. */
  pending: number;
  /** Of the requests that were due in each interval, when one was asked for. */
  timeline: { atMs: number; p50Us: number | null; maxUs: number | null; failures: number }[];
}

/** How load settings reach the process that makes the load. */
export interface LoadOrder extends Required<Omit<LoadSettings, 'signal'>> {
  /** The plants that ascend begin after this one, of 16 digits. */
  firstId: number;
  /** Of an open loop. */
  ratePerSecond?: number;
  timelineIntervalMs?: number;
}

/** The tool that drives a closed loop on this machine, with its version. */
export function loadTool(): string {
  const wrk = wrkVersion();
  return wrk === undefined ? 'test/harness/load-client.ts, for want of wrk' : `wrk ${wrk}`;
}

/**
 * Drives a closed loop: each connection sends its next plant as soon as the last one is answered.
 *
 * wrk adds to the latencies those that a request would have met which should have been sent while a slow one held its
 * connection up, going by the mean rate of the connection (stats_correct in its source). Where wrk is not installed a
 * client in Node does it, which takes several times as much of the processor from the server.
 *
 * @returns with the requests that were answered 200 and their rate; the latencies are those of all
 * @throws when the load tool fails, or is ended by the signal
 */
export async function runLoad(settings: LoadSettings): Promise<LoadResult> {
  const { signal } = settings;
  const order = orderOf(settings);
  if (wrkVersion() === undefined) return await runScript<LoadResult>(LOAD_CLIENT, order, signal);
  const result = await runWrk(order, signal);
  // What failed is no create, however quickly it was answered.
  const created = Math.max(result.requests - result.failures, 0);
  return {
    ...result,
    requests: created,
    ratePerSecond: (result.ratePerSecond * created) / result.requests,
  };
}

/**
 * Drives an open loop: plants are sent at their times whether or not earlier ones were answered, and the latency of
 * each counts from the time it was due, so that waiting for a free connection is part of it.
 *
 * @throws when the load client fails, or is ended by the signal
 */
export async function runOpenLoop(
  settings: LoadSettings & { ratePerSecond: number; timelineIntervalMs?: number },
): Promise<OpenLoopResult> {
  const { ratePerSecond, timelineIntervalMs, signal } = settings;
  const order = { ...orderOf(settings), ratePerSecond, timelineIntervalMs };
  return await runScript(LOAD_CLIENT, order, signal);
}

function orderOf({ url, token, connections, seconds, ids = 'ascending' }: LoadSettings): LoadOrder {
  // The time in µs, so that no run repeats an id.
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
 * Runs a program that takes an order as JSON on stdin and prints a result as JSON.
 *
 * @param signal ends the program
 * @throws when it ends without a result, or by the signal
 */
export async function runScript<Result>(
  script: string,
  order: object,
  signal: AbortSignal | undefined,
): Promise<Result> {
  const child = spawn(process.execPath, [script], { stdio: ['pipe', 'pipe', 'inherit'], signal });
  // One that ends before it has read its order ends without a result.
  child.stdin.on('error', () => {}).end(JSON.stringify(order));
  const [output] = await Promise.all([readText(child.stdout), once(child, 'close')]);
  if (output === '') throw new Error(`${script} ended without a result`);
  return JSON.parse(output);
}

let foundWrk: { version: string | undefined } | undefined;

/** wrk says its version and how it is used, and then fails. */
function wrkVersion(): string | undefined {
  foundWrk ??= {
    version: /^wrk (?:debian\/)?([0-9.]+)/.exec(
      spawnSync('wrk', ['-v'], { encoding: 'utf8' }).stdout ?? '',
    )?.[1],
  };
  return foundWrk.version;
}
