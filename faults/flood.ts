import { once } from 'node:events';
import { Worker } from 'node:worker_threads';

/** What is sent. Those of a kind are alike, but for ids and for tokens that are guessed. */
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
  /** On each connection; what is due beyond it is sent later, or not at all at a rate. */
  inFlightMax: number;
  /** Sends so many on all connections together, whatever becomes of them; without it as many as are taken. */
  ratePerSecond?: number;
}

export interface FloodResult {
  /** Responses, by status. */
  responses: Record<string, number>;
  withRetryAfter: number;
  /** From the first byte of a request to the last of its response. */
  latencies: Record<string, { p50Ms: number; p99Ms: number }>;
  /** Responses 200 in each second since the flood began. */
  storedEachSecond: number[];
  /** Due, and not sent: as many as may be were in flight. */
  heldBack: number;
  connectionsLost: number;
  /** In flight on connections that stayed open, a while behind the last that was sent. */
  pending: number;
}

/** Requests from a thread of its own, as many as a service takes or more, until it is told to end. */
export class Flood implements AsyncDisposable {
  readonly #thread: Worker;

  constructor(order: FloodOrder) {
    this.#thread = new Worker(new URL('./flood-thread.ts', import.meta.url), { workerData: order });
  }

  /** Sends no more, waits for the responses that are still to come, and says what was answered. */
  async end(): Promise<FloodResult> {
    const result = once(this.#thread, 'message');
    this.#thread.postMessage('end');
    return (await result)[0];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#thread.terminate();
  }
}
