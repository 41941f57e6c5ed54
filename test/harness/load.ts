import { execFile, spawnSync } from 'node:child_process';
import { on, once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';

const REQUESTS_SCRIPT = fileURLToPath(new URL('./create-requests.lua', import.meta.url));

/** Kinds of requests. Requests of a kind differ only in ids and guessed tokens. */
export const REQUEST_KINDS = [
  'plants',
  'unusual headers',
  'malformed tokens',
  'long plants',
  'unknown tokens',
  'other paths',
  'one-byte chunks',
  'begun bodies',
  'many members',
] as const;

export interface LoadOrder {
  /** Without the path. */
  url: string;
  token: string;
  connections: number;
  /** By default new plants. */
  kind?: (typeof REQUEST_KINDS)[number];
  /** For each connection, by default 1. */
  inFlightMax?: number;
  /** Makes the load an open loop, which sends at this rate for these seconds. */
  open?: { ratePerSecond: number; seconds: number };
  /** The result has the responses of each interval. By default there is one. */
  intervalMs?: number;
}

/** Responses with the same status. Latencies are from the time when the request was due. */
export interface Responses {
  count: number;
  p50Us: number;
  p99Us: number;
  maxUs: number;
}

export interface LoadResult {
  /** By status. */
  responses: Record<string, Responses>;
  /** The same for the requests that were due in each interval. */
  timeline: { atMs: number; responses: Record<string, Responses>; lost: number }[];
  withRetryAfter: number;
  /** Requests in flight on connections that were cut. */
  lost: number;
  /** Requests on open connections without a response some time after the last request. */
  pending: number;
}

/** A thread that sends requests. A closed loop sends as fast as responses come, until its end. */
export class Load implements AsyncDisposable {
  /** Settles when an open loop is over. */
  readonly result: Promise<LoadResult>;
  /** Settles at the first response. */
  readonly responded: Promise<unknown>;
  readonly #thread: Worker;

  /** @param signal rejects the result */
  constructor(order: LoadOrder, signal?: AbortSignal) {
    this.#thread = new Worker(new URL('./load-thread.ts', import.meta.url), { workerData: order });
    this.responded = once(this.#thread, 'message', { signal });
    this.result = this.#resultOf(signal);
    // Also if nobody waits for them.
    this.responded.catch(() => {});
    this.result.catch(() => {});
  }

  /** Stops a closed loop, and waits for the last responses. */
  end(): Promise<LoadResult> {
    this.#thread.postMessage('end');
    return this.result;
  }

  async #resultOf(signal: AbortSignal | undefined): Promise<LoadResult> {
    for await (const [message] of on(this.#thread, 'message', { signal }))
      if (message !== 'responded') return message;
    throw new Error('the load ended without a result');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#thread.terminate();
  }
}

/** The requests that wrk sends. */
export interface WrkSettings extends Pick<LoadOrder, 'url' | 'token' | 'connections'> {
  seconds: number;
  /** The ids of new plants: ascending (the default), or random with 19 digits. */
  ids?: 'ascending' | 'random';
  /** Ends the load, which then fails with an `AbortError`. */
  signal?: AbortSignal;
}

/** The result of wrk. Latencies are in µs. */
export interface WrkResult {
  requests: number;
  ratePerSecond: number;
  p50Us: number;
  p99Us: number;
  maxUs: number;
  /** Requests with an error response, or with a connection that was cut. */
  failures: number;
}

/**
 * Drives a closed loop with wrk. It corrects its latencies (`stats_correct` in its source): it adds
 * the requests that a slow one delayed, by the mean rate of the connection.
 *
 * @returns the number and rate of requests with the response 200, and the latencies of all
 * @throws if wrk is missing, if it fails or if the signal ends it
 */
export async function runWrk(settings: WrkSettings): Promise<WrkResult> {
  const { url, token, connections, seconds, ids = 'ascending', signal } = settings;
  // The time in µs, with 16 digits: no two runs use the same id.
  const env = { PATH: process.env.PATH, TOKEN: token, FIRST_ID: String(Date.now() * 1000), IDS: ids };
  const args = ['-t1', `-c${connections}`, `-d${seconds}s`, '-s', REQUESTS_SCRIPT, url];
  const { stdout } = await promisify(execFile)('wrk', args, { env, signal });
  const line = /^result (.*)$/m.exec(stdout)?.[1];
  if (line === undefined) throw new Error(`wrk printed no result:\n${stdout}`);
  const { durationUs, requests, ...result } = JSON.parse(line);
  // A failed request is not a create, even if its response was fast.
  const created = Math.max(requests - result.failures, 0);
  return { ...result, requests: created, ratePerSecond: (created * 1e6) / durationUs };
}

/** `wrk -v` prints its version and usage, and exits with an error. @throws if it is missing */
export function wrkVersion(): string {
  const { stdout } = spawnSync('wrk', ['-v'], { encoding: 'utf8' });
  const version = /^wrk (?:debian\/)?([0-9.]+)/.exec(stdout ?? '')?.[1];
  if (version === undefined) throw new Error('wrk is missing; install it (Debian: apt-get install wrk)');
  return version;
}
