import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text as readText } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const REQUESTS_SCRIPT = fileURLToPath(new URL('../../bench/create-requests.lua', import.meta.url));
const AUTOCANNON_SCRIPT = fileURLToPath(new URL('../../bench/peers/autocannon-load.js', import.meta.url));
const AUTOCANNON_PACKAGE = new URL('../../bench/peers/node_modules/autocannon/package.json', import.meta.url);
const OPEN_LOOP_SCRIPT = fileURLToPath(new URL('../../bench/open-loop.ts', import.meta.url));
const NAME_BYTES = 35;

/** What is sent, and how. */
export interface LoadSettings {
  /** Without the path. */
  url: string;
  token: string;
  connections: number;
  seconds: number;
  /** Of new plants: one more each time (the default), or drawn from 19 digits. */
  ids?: 'ascending' | 'random';
  /** Length of the name that is sent, at least 1. */
  nameBytes?: number;
  /** These are sent in turn instead of `token`. */
  tokens?: string[];
  /** Ends the load: it then fails with an `AbortError`. */
  signal?: AbortSignal;
}

/** What a load saw. Latencies are in µs. */
export interface LoadResult {
  requests: number;
  ratePerSecond: number;
  p50Us: number;
  p99Us: number;
  p999Us: number;
  maxUs: number;
  /** Answered with an error, or cut off. */
  failures: number;
}

/** How load settings reach a process that makes the load. */
export type LoadOrder = Required<
  Pick<LoadSettings, 'url' | 'connections' | 'seconds' | 'ids' | 'nameBytes'>
> & {
  /** The plants that ascend begin after this one, of 16 digits. */
  firstId: number;
  tokens: string[];
};

/** Whether loads are driven by wrk, and not by autocannon, which comes with the packages of the peers. */
export function hasWrk(): boolean {
  return wrkVersion() !== undefined;
}

/**
 * The tool that drives a closed loop on this machine, with its version.
 *
 * @throws when there is none
 */
export function loadTool(): string {
  const wrk = wrkVersion();
  if (wrk !== undefined) return `wrk ${wrk}`;
  try {
    return `autocannon ${JSON.parse(readFileSync(AUTOCANNON_PACKAGE, 'utf8')).version}`;
  } catch (error) {
    throw new Error('there is no load tool; install wrk, or run `npm ci` in bench/peers for autocannon', {
      cause: error,
    });
  }
}

/**
 * Drives a closed loop: each connection sends its next plant as soon as the last one is answered.
 *
 * wrk adds to the latencies those that a request would have met which should have been sent while a slow one held its
 * connection up, going by the mean pace of the connection (stats_correct in its source).
 *
 * @returns with the requests that were answered 200 and their rate; the latencies are those of all
 * @throws when the load tool fails, or is ended by the signal
 */
export async function runLoad(settings: LoadSettings): Promise<LoadResult> {
  const order = orderOf(settings);
  const { signal } = settings;
  const result = hasWrk()
    ? await runWrk(order, signal)
    : await runScript<LoadResult>(AUTOCANNON_SCRIPT, order, signal);
  // What failed is no create, however quickly it was answered.
  const kept = Math.max(result.requests - result.failures, 0);
  return { ...result, requests: kept, ratePerSecond: (result.ratePerSecond * kept) / result.requests };
}

/**
 * Drives an open loop: plants are sent at their times whether or not earlier ones were answered, and the latency of
 * each counts from the time it was due, so that waiting for a free connection is part of it.
 *
 * @returns with `unanswered`, those that had no answer a while after the last was due; they have no latency, and the
 *   quantiles are of the others
 */
export async function runOpenLoop(
  settings: LoadSettings & { ratePerSecond: number },
): Promise<LoadResult & { unanswered: number }> {
  const { ratePerSecond, signal } = settings;
  return await runScript(OPEN_LOOP_SCRIPT, { ...orderOf(settings), ratePerSecond }, signal);
}

function orderOf({
  url,
  token,
  connections,
  seconds,
  ids = 'ascending',
  nameBytes = NAME_BYTES,
  tokens = [token],
}: LoadSettings): LoadOrder {
  // The time in µs, so that no run repeats an id.
  const firstId = Date.now() * 1000;
  return { url, connections, seconds, ids, nameBytes, firstId, tokens };
}

async function runWrk(order: LoadOrder, signal: AbortSignal | undefined): Promise<LoadResult> {
  const folder = mkdtempSync(join(tmpdir(), 'plant-store-load-'));
  const tokensFile = join(folder, 'tokens');
  try {
    writeFileSync(tokensFile, order.tokens.map(token => `${token}\n`).join(''));
    const env = {
      PATH: process.env.PATH,
      TOKENS_FILE: tokensFile,
      FIRST_ID: String(order.firstId),
      IDS: order.ids,
      NAME_BYTES: String(order.nameBytes),
    };
    const args = ['-t1', `-c${order.connections}`, `-d${order.seconds}s`, '-s', REQUESTS_SCRIPT, order.url];
    const { stdout } = await promisify(execFile)('wrk', args, { env, signal });
    const line = /^result (.*)$/m.exec(stdout)?.[1];
    if (line === undefined) throw new Error(`wrk printed no result:\n${stdout}`);
    const { durationUs, ...result } = JSON.parse(line);
    return { ...result, ratePerSecond: (result.requests * 1e6) / durationUs };
  } finally {
    rmSync(folder, { recursive: true });
  }
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
