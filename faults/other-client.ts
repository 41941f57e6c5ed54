import { setTimeout as wait } from 'node:timers/promises';
import type { LoggedRequest } from '../test/harness/client-log.ts';
import { historyFaults } from '../test/harness/linearizable.ts';
import { LoggingClient } from '../test/harness/logging-client.ts';
import type { ServeProcess } from '../test/harness/program.ts';
import { median, quantile } from '../test/harness/statistics.ts';

/** The pause between a response and the next plant. */
const SEND_INTERVAL_MS = 5;

/** The limits for the times of responses, in ms. */
export interface Limits {
  p50: number;
  p99: number;
}

/** A client that takes no part in an attack. It sends one plant after another. */
export class OtherClient implements AsyncDisposable {
  readonly #log: LoggedRequest[] = [];
  readonly #client: LoggingClient;

  constructor({ url, token }: ServeProcess) {
    this.#client = new LoggingClient(url, token, this.#log);
  }

  /** Sends plants for some time. @returns how long each response took, in ms */
  async sendFor(ms: number, signal: AbortSignal): Promise<number[]> {
    const begin = this.#log.length;
    const untilMs = performance.now() + ms;
    while (performance.now() < untilMs && !signal.aborted) {
      await this.#client.send({ id: 1_000n + BigInt(this.#log.length), name: 'other' });
      await wait(SEND_INTERVAL_MS);
    }
    return this.#log.slice(begin).map(({ sentAt, respondedAt }) => respondedAt - sentAt);
  }

  /** @returns a fault if a plant got neither 200 nor 503, and the faults of the responses */
  faults(): string[] {
    const count = this.#log.filter(({ response }) => ![200, 503].includes(response?.status ?? 0)).length;
    const found = count === 0 ? [] : [`${count} of ${this.#log.length} plants of others got no 200`];
    return [...found, ...historyFaults(this.#log)];
  }

  /** @returns one line if a plant got 503, as on a busy machine */
  rejected(): string[] {
    const count = this.#log.filter(({ response }) => response?.status === 503).length;
    return count === 0 ? [] : [`${count} of ${this.#log.length} plants of others got 503`];
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#client.close();
  }
}

/** @returns the median, the 99th percentile and the maximum as text */
export function times(tookMs: readonly number[]): string {
  const shown = [median(tookMs), quantile(tookMs, 0.99), Math.max(...tookMs)].map(ms => ms.toFixed(1));
  return `${shown.join(', ')} ms of ${tookMs.length}`;
}

/** @returns one line if the responses took longer than the limits */
export function lateness(tookMs: readonly number[], { p50, p99 }: Limits): string[] {
  const isLate = median(tookMs) > p50 || quantile(tookMs, 0.99) > p99;
  return isLate ? [`others wait: p50, p99, max ${times(tookMs)}, limits ${p50}, ${p99} ms`] : [];
}
