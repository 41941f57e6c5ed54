import { createHistogram } from 'node:perf_hooks';
import { ERRORS } from '../../core/contract/errors.ts';
import { isErrorName } from '../../core/response.ts';
import type { Counts } from '../metrics.ts';

/** Samples at equal intervals. Times are in seconds since 1970. */
export interface SampleSeries {
  /** In seconds. */
  interval: number;
  /** The time of the first sample. The time of a sample is the end of its interval. */
  from: number;
  count: number;
  /** Values by name, the oldest first, without names that are always 0. As JSON, NaN is null. */
  columns: Record<string, number[]>;
}

/** A ring that outlives the process. */
export interface StoredRing {
  /** In seconds. */
  interval: number;
  /** The number of samples that fit. */
  length: number;
  /** The newest sample, in intervals since 1970. */
  newest: number;
  count: number;
  /** By name. A sample is at the index of its time, in intervals since 1970, modulo the length. */
  columns: ReadonlyMap<string, Float64Array>;
}

/** The newest samples of one interval. A further sample replaces the oldest one. */
export class SampleRing {
  /** Durations since the last sample. */
  readonly createMicroseconds = createHistogram();
  readonly #intervalSeconds: number;
  readonly #length: number;
  /**
   * By the names of src/pages/console/browser/now.js. NaN: not measured. An error gets its column
   * when it first occurs.
   */
  readonly #columns = new Map<string, Float64Array>();
  /** The counts at the last sample, and its time. */
  #before: { counts: Counts; second: number };
  /** The newest sample, in intervals since 1970. */
  #newest: number;
  #count = 0;

  /** @param counts now */
  constructor(intervalSeconds: number, length: number, counts: Counts) {
    this.#intervalSeconds = intervalSeconds;
    this.#length = length;
    this.#newest = Math.floor(currentSecond() / intervalSeconds);
    // The first interval began before the service. Its rate is a mean of the whole interval, as that
    // of all others, so that sums of rates are numbers of requests.
    this.#before = { counts, second: this.#newest * intervalSeconds };
  }

  /** The time of the newest sample. */
  get newest(): number {
    return this.#newest * this.#intervalSeconds;
  }

  stored(): StoredRing {
    const [interval, length] = [this.#intervalSeconds, this.#length];
    return { interval, length, newest: this.#newest, count: this.#count, columns: this.#columns };
  }

  /**
   * Continues the samples of an earlier process. In the time between, nothing was measured. It
   * does nothing if they have another interval or length.
   */
  restore({ interval, length, newest, count, columns }: StoredRing): void {
    if (interval !== this.#intervalSeconds || length !== this.#length) return;
    const now = this.#newest;
    for (const [name, column] of columns) this.#columns.set(name, column);
    [this.#newest, this.#count] = [newest, count];
    this.#advance(now - newest);
  }

  /** Adds a sample if its interval has ended. */
  add(counts: Counts, plantsInFlight: number): void {
    const second = currentSecond();
    const steps = Math.floor(second / this.#intervalSeconds) - this.#newest;
    if (steps === 0) return;
    this.#advance(steps);
    const before = this.#before;
    const seconds = Math.max(1, second - before.second);
    for (const [result, total] of counts.responses) {
      const name = isErrorName(result) ? `${ERRORS[result].number} ${result}` : result;
      this.#set(name, (total - before.counts.responses.get(result)!) / seconds);
    }
    const created = this.createMicroseconds;
    for (const percentile of [50, 99])
      this.#set(`p${percentile}`, created.count === 0 ? Number.NaN : created.percentile(percentile) / 1000);
    this.#set('in flight', plantsInFlight);
    // A mean without a batch is 0 / 0, which is NaN.
    const batches = counts.batches - before.counts.batches;
    this.#set('mean batch', (counts.batchPlants - before.counts.batchPlants) / batches);
    this.#set('mean commit', ((counts.commitSeconds - before.counts.commitSeconds) * 1000) / batches);
    created.reset();
    this.#before = { counts, second };
  }

  /** @param steps negative if the clock was set back: the samples after the new time are gone */
  #advance(steps: number): void {
    this.#count = Math.max(0, Math.min(this.#count + steps, this.#length));
    this.#newest += steps;
    // A late timer has missed intervals, in which nothing was measured. Another version may have
    // written columns that this one does not.
    for (let missing = 0; missing < Math.min(steps, this.#length); missing++)
      for (const column of this.#columns.values())
        column[(this.#newest - missing) % this.#length] = Number.NaN;
  }

  /** Sets a value of the newest sample. */
  #set(name: string, value: number): void {
    if (value === 0 && !this.#columns.has(name)) return;
    const column = this.#columns.getOrInsertComputed(name, () => new Float64Array(this.#length));
    column[this.#newest % this.#length] = Math.round(value * 1000) / 1000;
  }

  /** The samples after a second. */
  after(second: number): SampleSeries {
    const count = Math.min(this.#count, this.#newest - Math.floor(second / this.#intervalSeconds));
    const first = this.#newest - count + 1;
    const all = [...this.#columns].map(([name, column]): [name: string, values: number[]] => [
      name,
      Array.from({ length: count }, (_, index) => column[(first + index) % this.#length]!),
    ]);
    return {
      interval: this.#intervalSeconds,
      from: first * this.#intervalSeconds,
      count,
      columns: Object.fromEntries(all.filter(([, values]) => values.some(value => value !== 0))),
    };
  }
}

function currentSecond(): number {
  return Math.floor(Date.now() / 1_000);
}
