import { once } from 'node:events';
import { Worker } from 'node:worker_threads';

/** Kinds of requests. Requests of a kind differ only in ids and guessed tokens. */
export const FLOODS = [
  'plants',
  'long plants',
  'malformed tokens',
  'unknown tokens',
  'unusual headers',
  'other paths',
  'one-byte chunks',
  'begun bodies',
  'many members',
] as const;

export interface FloodOrder {
  kind: (typeof FLOODS)[number];
  port: number;
  token: string;
  connections: number;
  /** For each connection. Further requests are sent later, or skipped if there is a rate. */
  inFlightMax: number;
  /** The rate of all connections together. Without it, requests are sent as fast as possible. */
  ratePerSecond?: number;
}

export interface FloodResult {
  /** The number of responses by status. */
  responses: Record<string, number>;
  withRetryAfter: number;
  /** From the first byte of a request to the last byte of its response, by status. */
  latencies: Record<string, { p50Ms: number; p99Ms: number }>;
  /** The number of 200s in each second of the flood. */
  storedEachSecond: number[];
  /** Skipped requests, because `inFlightMax` requests were in flight. */
  skipped: number;
  connectionsLost: number;
  /** Requests on open connections without a response some time after the last request. */
  pending: number;
}

/** A thread that sends at least as many requests as a service can process, until `end`. */
export class Flood implements AsyncDisposable {
  readonly #thread: Worker;

  constructor(order: FloodOrder) {
    this.#thread = new Worker(new URL('./flood-thread.ts', import.meta.url), { workerData: order });
  }

  /** Stops the flood and waits for the last responses. */
  async end(): Promise<FloodResult> {
    const result = once(this.#thread, 'message');
    this.#thread.postMessage('end');
    return (await result)[0];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#thread.terminate();
  }
}
