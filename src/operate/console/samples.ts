import type { PlantQueue } from '../../core/commit/plant-commits.ts';
import type { ResponseObserver } from '../../core/extension-points.ts';
import type { ReceivedRequest } from '../../core/request.ts';
import { type HttpResponse, isOutcome } from '../../core/response.ts';
import type { Metrics } from '../metrics.ts';
import { SampleRing, type SampleSeries, type StoredRing } from './sample-ring.ts';

/** The samples that the page does not have yet. Times are in seconds since 1970. */
export interface NewSamples {
  /** The time of the newest sample. */
  newest: number;
  rings: SampleSeries[];
  /** Ms since 1970. */
  startedAt: number;
}

/**
 * Samples of the last 24 hours: rates from the counts of the metrics, and percentiles of durations.
 * Both rings together take at most 3 MB.
 */
export class Samples implements ResponseObserver, Disposable {
  readonly #metrics: Metrics;
  readonly #queue: PlantQueue;
  readonly #startedAt = Date.now();
  /** A sample each second, for 15 minutes. */
  readonly #short: SampleRing;
  /** A sample each ten seconds, for 24 hours. */
  readonly #long: SampleRing;
  #timer: NodeJS.Timeout;

  constructor(metrics: Metrics, queue: PlantQueue) {
    this.#metrics = metrics;
    this.#queue = queue;
    const counts = this.#metrics.counts();
    this.#short = new SampleRing(1, 15 * 60, counts);
    this.#long = new SampleRing(10, 24 * 60 * 6, counts);
    this.#timer = this.#nextSample();
  }

  responded(
    { result }: Pick<HttpResponse, 'result'>,
    _received: ReceivedRequest | undefined,
    durationMs: number,
  ): void {
    if (!isOutcome(result)) return;
    // A histogram of Node accepts only integers from 1.
    this.#short.createMicroseconds.record(Math.max(1, Math.round(durationMs * 1000)));
  }

  /** @returns the samples after a second; all samples for 0, and for a second in the future */
  after(second: number): NewSamples {
    const { newest } = this.#short;
    const since = second > newest ? 0 : second;
    return {
      newest,
      rings: [this.#short.after(since), this.#long.after(since)],
      startedAt: this.#startedAt,
    };
  }

  /** The samples of 24 hours. */
  stored(): StoredRing {
    return this.#long.stored();
  }

  /** Continues the samples of 24 hours of an earlier process. Call it before the first sample. */
  restore(stored: StoredRing): void {
    this.#long.restore(stored);
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }

  /** Each timer is for the next full second: equal intervals would drift, and skip a second. */
  #nextSample(): NodeJS.Timeout {
    return setTimeout(() => this.#sample(), 1_000 - (Date.now() % 1_000));
  }

  #sample(): void {
    const counts = this.#metrics.counts();
    const { plantsInFlight } = this.#queue.statistics;
    // Percentiles of ten seconds need all durations of that time, not percentiles of each second.
    this.#long.createMicroseconds.add(this.#short.createMicroseconds);
    this.#short.add(counts, plantsInFlight);
    this.#long.add(counts, plantsInFlight);
    this.#timer = this.#nextSample();
  }
}
