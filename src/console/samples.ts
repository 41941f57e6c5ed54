import { createHistogram } from 'node:perf_hooks';
import { ERRORS } from '../contract/errors.ts';
import { isErrorName } from '../http/response.ts';
import type { Counts, Metrics } from '../ops/metrics.ts';
import type { CommandRun } from '../store/plant-store.ts';

/** A sample a second for 15 minutes, and one of ten seconds for 24 hours: at most 3 MB. */
const SHORT_INTERVAL_SECONDS = 1;
const SHORT_SAMPLES_MAX = 15 * 60;
const LONG_INTERVAL_SECONDS = 10;
const LONG_SAMPLES_MAX = (24 * 60 * 60) / LONG_INTERVAL_SECONDS;
const MARKS_MAX = 100;

/** What the page marks on its time axes. The times are seconds since 1970. */
interface Mark {
  at: number;
  text: string;
  /** The sample in which it became known. */
  sampledAt: number;
}

/** Samples of the last 24 hours, from the counters of the metrics, and what happened meanwhile. */
export class Samples implements Disposable {
  readonly #metrics: Metrics;
  readonly #plantsInFlight: () => number;
  readonly #lastRuns: () => Promise<CommandRun[]>;
  readonly #short: SampleRing;
  readonly #long: SampleRing;
  readonly #marks: Mark[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(metrics: Metrics, plantsInFlight: () => number, lastRuns: () => Promise<CommandRun[]>) {
    this.#metrics = metrics;
    this.#plantsInFlight = plantsInFlight;
    this.#lastRuns = lastRuns;
    const second = thisSecond();
    this.#short = new SampleRing(SHORT_INTERVAL_SECONDS, SHORT_SAMPLES_MAX, second, metrics.counts());
    this.#long = new SampleRing(LONG_INTERVAL_SECONDS, LONG_SAMPLES_MAX, second, metrics.counts());
    metrics.createMicroseconds = this.#short.createMicroseconds;
    this.#mark(second, 'start');
    void this.#markRuns();
    this.#wait();
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }

  /** @param second 0: all samples. One that is later than the newest sample counts as 0 */
  after(second: number) {
    const newest = this.#short.newest;
    const since = second > newest ? 0 : second;
    const marks = this.#marks.filter(({ sampledAt }) => sampledAt > since);
    return { newest, rings: [this.#short.after(since), this.#long.after(since)], marks };
  }

  /** Each timer is for the next full second. Repeated intervals would drift, and skip a second. */
  #wait(): void {
    this.#timer = setTimeout(() => this.#sample(), 1_000 - (Date.now() % 1_000));
  }

  #sample(): void {
    const second = thisSecond();
    const counts = this.#metrics.counts();
    const inFlight = this.#plantsInFlight();
    // Percentiles of ten seconds come from all their durations, not from other percentiles.
    this.#long.createMicroseconds.add(this.#short.createMicroseconds);
    this.#short.add(second, counts, inFlight);
    if (this.#long.add(second, counts, inFlight)) void this.#markRuns();
    this.#wait();
  }

  /** The store watch reports a store that does not respond. */
  async #markRuns(): Promise<void> {
    for (const { command, endedAt } of await this.#lastRuns().catch(() => []))
      this.#mark(Math.floor(endedAt / 1_000), command);
  }

  #mark(at: number, text: string): void {
    if (this.#marks.some(mark => mark.at === at && mark.text === text)) return;
    this.#marks.push({ at, text, sampledAt: this.#short.newest + 1 });
    if (this.#marks.length > MARKS_MAX) this.#marks.shift();
  }
}

/** The newest samples of one interval. A sample has the time of its end. */
class SampleRing {
  /** Durations since the last sample. */
  readonly createMicroseconds = createHistogram();
  readonly #interval: number;
  readonly #length: number;
  /** By the names of lines in browser/now.js. NaN: not measured. Most errors never get a column. */
  readonly #columns = new Map<string, Float64Array>();
  /** The number of the newest sample since 1970. */
  #newest: number;
  #count = 0;
  #before: Counts;
  /** The second of #before. */
  #since: number;

  constructor(interval: number, length: number, second: number, counts: Counts) {
    this.#interval = interval;
    this.#length = length;
    this.#newest = Math.floor(second / interval);
    this.#before = counts;
    this.#since = second;
  }

  /** The second of the newest sample. */
  get newest(): number {
    return this.#newest * this.#interval;
  }

  /** Adds a sample if its interval has ended. @returns whether it has */
  add(second: number, counts: Counts, inFlight: number): boolean {
    const number = Math.floor(second / this.#interval);
    const steps = number - this.#newest;
    if (steps === 0) return false;
    this.#newest = number;
    this.#count = Math.max(0, Math.min(this.#count + steps, this.#length));
    // The clock was set back. The samples of the time that comes again are gone.
    const elapsedSeconds = steps < 0 ? this.#interval : second - this.#since;
    // A late timer: nothing was measured in the seconds before.
    for (let missing = 1; missing < Math.min(steps, this.#length); missing++)
      for (const column of this.#columns.values()) column[(number - missing) % this.#length] = Number.NaN;
    for (const [name, value] of valuesOf(this.#before, counts, elapsedSeconds)) this.#set(name, value);
    const created = this.createMicroseconds;
    for (const percentile of [50, 99])
      this.#set(`p${percentile}`, created.count === 0 ? Number.NaN : created.percentile(percentile) / 1000);
    // At the end of the interval.
    this.#set('inFlight', inFlight);
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

  /** @returns samples by name, oldest first, without those that are all 0; null: not measured */
  after(second: number) {
    const after = Math.floor(second / this.#interval);
    const count = Math.max(0, Math.min(this.#count, this.#newest - after));
    const first = this.#newest - count + 1;
    const values: Record<string, (number | null)[]> = {};
    for (const [name, column] of this.#columns) {
      const some = Array.from({ length: count }, (_, index) => column[(first + index) % this.#length]!);
      // JSON has null for NaN.
      if (some.some(value => value !== 0)) values[name] = some;
    }
    return { interval: this.#interval, from: first * this.#interval, to: this.newest, values };
  }
}

/** What was counted between two readings: rates per second, and means of the batches. */
function* valuesOf(before: Counts, counts: Counts, seconds: number): Iterable<[string, number]> {
  for (const [result, count] of counts.responses) {
    const name = isErrorName(result) ? `${ERRORS[result].number} ${result}` : result;
    yield [name, (count - before.responses.get(result)!) / seconds];
  }
  const batches = counts.batches - before.batches;
  // Without a batch, 0 / 0: not measured.
  yield ['batchPlants', (counts.batchPlants - before.batchPlants) / batches];
  yield ['commitMs', ((counts.commitSeconds - before.commitSeconds) * 1000) / batches];
}

function thisSecond(): number {
  return Math.floor(Date.now() / 1_000);
}
