import { createHistogram } from 'node:perf_hooks';
import { ERRORS } from '../contract/errors.ts';
import { isErrorName, type Result } from '../http/response.ts';
import type { Counts, Metrics } from '../ops/metrics.ts';
import type { StorageEngine } from '../store/open-store.ts';
import type { CommandRun, PlantQueue } from '../store/plant-store.ts';

/** Both together take at most 3 MB. */
const SHORT = { intervalSeconds: 1, length: 15 * 60 };
const LONG = { intervalSeconds: 10, length: 24 * 60 * 6 };

/** Samples of the last 24 hours, from the counters of the metrics, and times that the page marks. */
export class Samples implements Disposable {
  readonly #metrics: Metrics;
  readonly #queue: PlantQueue;
  readonly #engine: StorageEngine;
  readonly #short: SampleRing;
  readonly #long: SampleRing;
  readonly #startedAt = Date.now();
  #runs: CommandRun[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(metrics: Metrics, queue: PlantQueue, engine: StorageEngine) {
    this.#metrics = metrics;
    this.#queue = queue;
    this.#engine = engine;
    const counts = metrics.counts();
    this.#short = new SampleRing(SHORT, counts);
    this.#long = new SampleRing(LONG, counts);
    metrics.createMicroseconds = this.#short.createMicroseconds;
    void this.#readRuns();
    this.#wait();
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }

  /** @param second 0: all samples, as for one that is in the future */
  after(second: number) {
    const { newest } = this.#short;
    const rings = [this.#short, this.#long].map(ring => ring.after(second > newest ? 0 : second));
    return { newest, rings, startedAt: this.#startedAt, runs: this.#runs };
  }

  /** Each timer is for the next full second: equal intervals would drift, and skip a second. */
  #wait(): void {
    this.#timer = setTimeout(() => this.#sample(), 1_000 - (Date.now() % 1_000));
  }

  #sample(): void {
    const counts = this.#metrics.counts();
    const { plantsInFlight } = this.#queue.statistics;
    // Percentiles of ten seconds come from all their durations, not from other percentiles.
    this.#long.createMicroseconds.add(this.#short.createMicroseconds);
    this.#short.add(counts, plantsInFlight);
    if (this.#long.add(counts, plantsInFlight)) void this.#readRuns();
    this.#wait();
  }

  /** The store watch reports a store that does not respond. */
  async #readRuns(): Promise<void> {
    this.#runs = await this.#engine.lastRuns().catch(() => this.#runs);
  }
}

/** The newest samples of one interval. The time of a sample is its end. */
class SampleRing {
  /** Durations since the last sample. */
  readonly createMicroseconds = createHistogram();
  readonly #intervalSeconds: number;
  readonly #length: number;
  /** By the names of lines in browser/now.js. NaN: not measured. Most errors have no column. */
  readonly #columns = new Map<string, Float64Array>();
  /** The newest sample, in intervals since 1970. */
  #newest: number;
  #count = 0;
  #before: Counts;
  /** The second of #before. */
  #since = thisSecond();

  constructor({ intervalSeconds, length }: typeof SHORT, counts: Counts) {
    this.#intervalSeconds = intervalSeconds;
    this.#length = length;
    this.#newest = Math.floor(this.#since / intervalSeconds);
    this.#before = counts;
  }

  /** The second of the newest sample. */
  get newest(): number {
    return this.#newest * this.#intervalSeconds;
  }

  /** Adds a sample if its interval has ended. @returns whether it has */
  add(counts: Counts, plantsInFlight: number): boolean {
    const second = thisSecond();
    const newest = Math.floor(second / this.#intervalSeconds);
    const steps = newest - this.#newest;
    if (steps === 0) return false;
    // If the clock was set back, steps is negative: the samples after the new time are gone.
    this.#count = Math.max(0, Math.min(this.#count + steps, this.#length));
    // After a late timer, nothing was measured before.
    for (let missing = 1; missing < Math.min(steps, this.#length); missing++)
      for (const column of this.#columns.values()) column[(newest - missing) % this.#length] = Number.NaN;
    this.#newest = newest;
    const seconds = Math.max(1, second - this.#since);
    const before = this.#before;
    for (const [result, count] of counts.responses)
      this.#set(nameOf(result), (count - before.responses.get(result)!) / seconds);
    const created = this.createMicroseconds;
    for (const percentile of [50, 99])
      this.#set(`p${percentile}`, created.count === 0 ? Number.NaN : created.percentile(percentile) / 1000);
    this.#set('in flight', plantsInFlight);
    // Means. Without a batch, 0 / 0 is NaN.
    const batches = counts.batches - before.batches;
    this.#set('mean batch', (counts.batchPlants - before.batchPlants) / batches);
    this.#set('mean commit', ((counts.commitSeconds - before.commitSeconds) * 1000) / batches);
    created.reset();
    this.#before = counts;
    this.#since = second;
    return true;
  }

  #set(name: string, value: number): void {
    if (value === 0 && !this.#columns.has(name)) return;
    const column = this.#columns.getOrInsertComputed(name, () => new Float64Array(this.#length));
    column[this.#newest % this.#length] = Math.round(value * 1000) / 1000;
  }

  /** @returns samples by name, oldest first, without names that are always 0; as JSON, NaN is null */
  after(second: number) {
    const count = Math.min(this.#count, this.#newest - Math.floor(second / this.#intervalSeconds));
    const first = this.#newest - count + 1;
    const columns = [...this.#columns].map(([name, column]): [name: string, values: number[]] => [
      name,
      Array.from({ length: count }, (_, index) => column[(first + index) % this.#length]!),
    ]);
    return {
      ...{ interval: this.#intervalSeconds, from: first * this.#intervalSeconds, count },
      columns: Object.fromEntries(columns.filter(([, values]) => values.some(value => value !== 0))),
    };
  }
}

/** The name of a line: an outcome, or the number and the name of an error. */
function nameOf(result: Result): string {
  return isErrorName(result) ? `${ERRORS[result].number} ${result}` : result;
}

function thisSecond(): number {
  return Math.floor(Date.now() / 1_000);
}
