import { createHistogram } from 'node:perf_hooks';
import type { PlantQueue } from '../../core/commit/plant-commits.ts';
import { ERRORS } from '../../core/contract/errors.ts';
import type { HttpResponse } from '../../core/response.ts';
import type { Counts, Metrics } from '../metrics.ts';
import { isErrorName, isOutcome } from '../result-kind.ts';

/** Both rings together take at most 3 MB. */
const SHORT = { intervalSeconds: 1, length: 15 * 60 };
const LONG = { intervalSeconds: 10, length: 24 * 60 * 6 };

export type Samples = ReturnType<typeof startSamples>;

/**
 * Samples of the last 24 hours: rates from the counts of the metrics, and percentiles of durations.
 */
export function startSamples(metrics: Metrics, queue: PlantQueue) {
  const startedAt = Date.now();
  const short = ringOf(SHORT, metrics.counts());
  const long = ringOf(LONG, metrics.counts());
  let timer: NodeJS.Timeout;
  const sample = () => {
    const counts = metrics.counts();
    const { plantsInFlight } = queue.statistics;
    // Percentiles of ten seconds need all durations of that time, not percentiles of each second.
    long.createMicroseconds.add(short.createMicroseconds);
    short.add(counts, plantsInFlight);
    long.add(counts, plantsInFlight);
    wait();
  };
  // Each timer is for the next full second: equal intervals would drift, and skip a second.
  const wait = () => {
    timer = setTimeout(sample, 1_000 - (Date.now() % 1_000));
  };
  wait();
  return {
    responded({ result }: Pick<HttpResponse, 'result'>, _request: unknown, durationMs: number): void {
      if (!isOutcome(result)) return;
      // A histogram of Node accepts only integers from 1.
      short.createMicroseconds.record(Math.max(1, Math.round(durationMs * 1000)));
    },
    /** @returns the samples after a second; all samples for 0, and for a second in the future */
    after(second: number) {
      const newest = short.newest();
      const rings = [short, long].map(ring => ring.after(second > newest ? 0 : second));
      return { newest, rings, startedAt };
    },
    [Symbol.dispose]: () => clearTimeout(timer),
  };
}

/** The newest samples of one interval. The time of a sample is its end. */
function ringOf({ intervalSeconds, length }: typeof SHORT, before: Counts) {
  /** Durations since the last sample. */
  const createMicroseconds = createHistogram();
  /**
   * By the names of src/pages/console/browser/now.js. NaN: not measured. An error gets its column
   * when it first occurs.
   */
  const columns = new Map<string, Float64Array>();
  /** The second of `before`. */
  let since = Math.floor(Date.now() / 1_000);
  /** The newest sample, in intervals since 1970. */
  let newest = Math.floor(since / intervalSeconds);
  let count = 0;

  function set(name: string, value: number): void {
    if (value === 0 && !columns.has(name)) return;
    const column = columns.getOrInsertComputed(name, () => new Float64Array(length));
    column[newest % length] = Math.round(value * 1000) / 1000;
  }

  return {
    createMicroseconds,
    /** The second of the newest sample. */
    newest: () => newest * intervalSeconds,
    /** Adds a sample if its interval has ended. */
    add(counts: Counts, plantsInFlight: number): void {
      const second = Math.floor(Date.now() / 1_000);
      const steps = Math.floor(second / intervalSeconds) - newest;
      if (steps === 0) return;
      // If the clock was set back, steps is negative: the samples after the new time are gone.
      count = Math.max(0, Math.min(count + steps, length));
      newest += steps;
      // A late timer has missed intervals, in which nothing was measured.
      for (let missing = 1; missing < Math.min(steps, length); missing++)
        for (const column of columns.values()) column[(newest - missing) % length] = Number.NaN;
      const seconds = Math.max(1, second - since);
      for (const [result, total] of counts.responses) {
        const name = isErrorName(result) ? `${ERRORS[result].number} ${result}` : result;
        set(name, (total - before.responses.get(result)!) / seconds);
      }
      const created = createMicroseconds;
      for (const percentile of [50, 99])
        set(`p${percentile}`, created.count === 0 ? Number.NaN : created.percentile(percentile) / 1000);
      set('in flight', plantsInFlight);
      // A mean without a batch is 0 / 0, which is NaN.
      const batches = counts.batches - before.batches;
      set('mean batch', (counts.batchPlants - before.batchPlants) / batches);
      set('mean commit', ((counts.commitSeconds - before.commitSeconds) * 1000) / batches);
      created.reset();
      [before, since] = [counts, second];
    },
    /** @returns samples by name, oldest first, without names that are always 0; as JSON, NaN is null */
    after(second: number) {
      const shown = Math.min(count, newest - Math.floor(second / intervalSeconds));
      const first = newest - shown + 1;
      const all = [...columns].map(([name, column]): [name: string, values: number[]] => [
        name,
        Array.from({ length: shown }, (_, index) => column[(first + index) % length]!),
      ]);
      return {
        interval: intervalSeconds,
        from: first * intervalSeconds,
        count: shown,
        columns: Object.fromEntries(all.filter(([, values]) => values.some(value => value !== 0))),
      };
    },
  };
}
