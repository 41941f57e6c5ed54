import { createHistogram } from 'node:perf_hooks';
import type { Counts, Metrics } from '../ops/metrics.ts';

/** Samples, one for each second: the last 15 minutes. */
const SAMPLES_MAX = 15 * 60;

/** What happened in one second, by the names of lines in browser/now.js. Null: not measured. */
type Sample = Record<string, number | null>;

/** Samples of the last 15 minutes, from the counters of the metrics. */
export class Samples implements Disposable {
  readonly #samples: Sample[] = [];
  /** The second of the newest sample, since 1970. */
  #newest = thisSecond();
  readonly #metrics: Metrics;
  readonly #plantsInFlight: () => number;
  #before: Counts;
  /** Durations since the last sample. */
  readonly #createMicroseconds = createHistogram();
  readonly #timer = setInterval(() => this.#addDue(), 1_000);

  constructor(metrics: Metrics, plantsInFlight: () => number) {
    this.#metrics = metrics;
    this.#plantsInFlight = plantsInFlight;
    this.#before = metrics.counts();
    metrics.createMicroseconds = this.#createMicroseconds;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  /** @returns the samples after a second, and the second of the first sample */
  after(second: number): { from: number; samples: Sample[] } {
    const count = Math.max(0, Math.min(this.#samples.length, this.#newest - second));
    return {
      from: this.#newest - count + 1,
      samples: this.#samples.slice(this.#samples.length - count),
    };
  }

  /** A timer may be late. Then the first missing second gets all counts, the others none. */
  #addDue(): void {
    const now = thisSecond();
    this.#newest = Math.max(this.#newest, now - SAMPLES_MAX);
    for (; this.#newest < now; this.#newest++) this.#add();
  }

  #add(): void {
    const before = this.#before;
    const counts = this.#metrics.counts();
    this.#before = counts;
    const created = this.#createMicroseconds;
    const percentileMs = (percentile: number): number | null =>
      created.count === 0 ? null : created.percentile(percentile) / 1000;
    const batches = counts.batches - before.batches;
    this.#samples.push({
      created: counts.created - before.created,
      revised: counts.revised - before.revised,
      unchanged: counts.unchanged - before.unchanged,
      failed: counts.failed - before.failed,
      p50: percentileMs(50),
      p99: percentileMs(99),
      // At the end of the second.
      inFlight: this.#plantsInFlight(),
      // Means of the batches.
      batchPlants: batches === 0 ? null : (counts.batchPlants - before.batchPlants) / batches,
      commitMs: batches === 0 ? null : ((counts.commitSeconds - before.commitSeconds) * 1000) / batches,
    });
    created.reset();
    if (this.#samples.length > SAMPLES_MAX) this.#samples.shift();
  }
}

/** Seconds since 1970, by the monotonic clock, which nobody can set back. */
function thisSecond(): number {
  return Math.floor((performance.timeOrigin + performance.now()) / 1000);
}
