import { createHistogram } from 'node:perf_hooks';
import { ERRORS } from '../contract/errors.ts';
import { isErrorName } from '../http/response.ts';
import type { Counts, Metrics } from '../ops/metrics.ts';
import type { StorageEngine } from '../store/open-store.ts';
import type { CommandRun, PlantQueue } from '../store/plant-store.ts';

/** Both together take about 3 MB. */
const SHORT = { intervalSeconds: 1, length: 15 * 60 };
const LONG = { intervalSeconds: 10, length: 24 * 60 * 6 };

export type Samples = ReturnType<typeof startSamples>;

/** Samples of the last 24 hours, from the counters of the metrics, and times that the page marks. */
export function startSamples(metrics: Metrics, queue: PlantQueue, engine: StorageEngine) {
  const startedAt = Date.now();
  const short = ringOf(SHORT, metrics.counts());
  const long = ringOf(LONG, metrics.counts());
  metrics.createMicroseconds = short.createMicroseconds;
  let runs: CommandRun[] = [];
  // The store watch reports a store that does not respond.
  const readRuns = async () => {
    runs = await engine.lastRuns().catch(() => runs);
  };
  void readRuns();
  let timer: NodeJS.Timeout;
  const sample = () => {
    const counts = metrics.counts();
    const { plantsInFlight } = queue.statistics;
    // Percentiles of ten seconds come from all their durations, not from other percentiles.
    long.createMicroseconds.add(short.createMicroseconds);
    short.add(counts, plantsInFlight);
    if (long.add(counts, plantsInFlight)) void readRuns();
    wait();
  };
  // Each timer is for the next full second: equal intervals would drift, and skip a second.
  const wait = () => {
    timer = setTimeout(sample, 1_000 - (Date.now() % 1_000));
  };
  wait();
  return {
    /** @param second 0: all samples, as for one that is in the future */
    after(second: number) {
      const newest = short.newest();
      const rings = [short, long].map(ring => ring.after(second > newest ? 0 : second));
      return { newest, rings, startedAt, runs };
    },
    [Symbol.dispose]: () => clearTimeout(timer),
  };
}

/** The newest samples of one interval. The time of a sample is its end. */
function ringOf({ intervalSeconds, length }: typeof SHORT, before: Counts) {
  /** Durations since the last sample. */
  const createMicroseconds = createHistogram();
  /** By time, in intervals since 1970, without values that are 0. NaN: not measured. */
  const samples = new Map<number, Record<string, number>>();
  /** The names of lines in browser/now.js that had a value. */
  const names = new Set<string>();
  /** The second of `before`. */
  let since = thisSecond();
  let newest = Math.floor(since / intervalSeconds);
  let first = newest + 1;

  function sampleOf(counts: Counts, plantsInFlight: number, seconds: number): Record<string, number> {
    const batches = counts.batches - before.batches;
    const durationMs = (percentile: number): number =>
      createMicroseconds.count === 0 ? Number.NaN : createMicroseconds.percentile(percentile) / 1000;
    const rates = [...counts.responses].map(([result, count]): [name: string, value: number] => [
      isErrorName(result) ? `${ERRORS[result].number} ${result}` : result,
      (count - before.responses.get(result)!) / seconds,
    ]);
    const values = Object.entries({
      ...Object.fromEntries(rates),
      ...{ p50: durationMs(50), p99: durationMs(99), 'in flight': plantsInFlight },
      // Means. Without a batch, 0 / 0 is NaN.
      'mean batch': (counts.batchPlants - before.batchPlants) / batches,
      'mean commit': ((counts.commitSeconds - before.commitSeconds) * 1000) / batches,
    });
    const shown = values.filter(([, value]) => value !== 0);
    return Object.fromEntries(shown.map(([name, value]) => [name, Math.round(value * 1000) / 1000]));
  }

  return {
    createMicroseconds,
    /** The second of the newest sample. */
    newest: () => newest * intervalSeconds,
    /** Adds a sample if its interval has ended. @returns whether it has */
    add(counts: Counts, plantsInFlight: number): boolean {
      const second = thisSecond();
      if (Math.floor(second / intervalSeconds) === newest) return false;
      newest = Math.floor(second / intervalSeconds);
      // The clock may have been set back: the samples after the new time are gone.
      for (const time of samples.keys()) if (time <= newest - length || time >= newest) samples.delete(time);
      first = Math.min(first, newest);
      const sample = sampleOf(counts, plantsInFlight, Math.max(1, second - since));
      samples.set(newest, sample);
      for (const name of Object.keys(sample)) names.add(name);
      createMicroseconds.reset();
      [before, since] = [counts, second];
      return true;
    },
    /** @returns samples by name, oldest first, without names that are always 0; as JSON, NaN is null */
    after(second: number) {
      const from = Math.max(first, newest - length + 1, Math.floor(second / intervalSeconds) + 1);
      const found = Array.from({ length: Math.max(0, newest - from + 1) }, (_, index) =>
        samples.get(from + index),
      );
      // After a late timer, nothing was measured.
      const columns = [...names].map((name): [name: string, values: number[]] => [
        name,
        found.map(sample => (sample === undefined ? Number.NaN : (sample[name] ?? 0))),
      ]);
      return {
        ...{ interval: intervalSeconds, from: from * intervalSeconds, count: found.length },
        columns: Object.fromEntries(columns.filter(([, values]) => values.some(value => value !== 0))),
      };
    },
  };
}

function thisSecond(): number {
  return Math.floor(Date.now() / 1_000);
}
