import { type Clock, repeat, SYSTEM_CLOCK } from '../../core/clock.ts';
import { ERROR_NAMES, ERRORS } from '../../core/contract/errors.ts';
import { OUTCOMES } from '../../core/contract/plant.ts';
import type { RequestResult } from '../../core/response.ts';
import type { Counts, Metrics } from '../metrics.ts';
import type { ResponseRates } from './service-state.ts';

const REJECTIONS = ERROR_NAMES.filter(name => ERRORS[name].status < 500);
const ASSESSED_INTERVAL_MS = 1_000;
/** The weight of the last second in a mean. It is low, so that a burst causes no warning. */
const SMOOTHING = 0.25;

/** Rates of responses and the mean commit time of the last seconds, computed from the metrics. */
export class RecentRates implements Disposable {
  readonly #metrics: Metrics;
  /** The counts at the end of the last second. */
  #before: Counts;
  /** Responses in the last second, smoothed. */
  readonly #rates = new Map<RequestResult, number>();
  #commitSeconds = 0;
  readonly #timer: Disposable;

  constructor(metrics: Metrics, clock: Clock = SYSTEM_CLOCK) {
    this.#metrics = metrics;
    this.#before = metrics.counts();
    this.#timer = repeat(clock, () => this.#assess(), ASSESSED_INTERVAL_MS);
  }

  [Symbol.dispose](): void {
    this.#timer[Symbol.dispose]();
  }

  #assess(): void {
    const before = this.#before;
    const counts = this.#metrics.counts();
    for (const [result, count] of counts.responses) {
      const rate = this.#rateOf(result);
      this.#rates.set(result, rate + (count - before.responses.get(result)! - rate) * SMOOTHING);
    }
    const batches = Math.max(1, counts.batches - before.batches);
    const mean = (counts.commitSeconds - before.commitSeconds) / batches;
    this.#commitSeconds += (mean - this.#commitSeconds) * SMOOTHING;
    this.#before = counts;
  }

  /** The mean duration of commits, smoothed. A second without a commit counts as 0. */
  get commitSeconds(): number {
    return this.#commitSeconds;
  }

  /** The rates of the last seconds. */
  get rates(): ResponseRates {
    const sumOf = (results: readonly RequestResult[]): number =>
      results.reduce((sum, each) => sum + this.#rateOf(each), 0);
    const mostFrequentError = REJECTIONS.toSorted((a, b) => this.#rateOf(b) - this.#rateOf(a))[0]!;
    return {
      rejectedPerSecond: sumOf(REJECTIONS),
      confirmedPerSecond: sumOf(OUTCOMES),
      mostFrequentError,
    };
  }

  #rateOf(result: RequestResult): number {
    return this.#rates.get(result) ?? 0;
  }
}
