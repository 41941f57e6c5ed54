import type { PlantCommits, PlantWrite, StoreUnavailable, WriteResult } from '../store/plant-store.ts';
import type { DamagedPlants } from './damaged-plants.ts';
import type { Metrics } from './metrics.ts';
import type { FailureLog } from './rate-limited-log.ts';

/**
 * Wraps the engine: reports each commit to the metrics and the log, and measures for how long
 * commits fail.
 *
 * A second is bad when most of its plants were not confirmed: a nearly full disk still confirms
 * some small batches. After a bad second, a test commit assesses each second without plants: a
 * service that is not ready gets none.
 *
 * @returns the wrapped operations; `damagedPlants`, their number; `assess`, which the caller calls
 *   every second, and which never throws; `failingMs`, the time since the first bad second ended, 0
 *   if the last one was not bad
 */
export function monitoredCommits(
  engine: PlantCommits,
  metrics: Metrics,
  log: FailureLog,
  damaged: DamagedPlants,
) {
  let confirmed = 0;
  let failed = 0;
  let failingSince: number | undefined;
  /** Batches, or a test commit. */
  let inFlight = 0;
  return {
    commit: async (writes: readonly PlantWrite[]): Promise<WriteResult[]> => {
      const beganAt = performance.now();
      inFlight++;
      try {
        const results = await engine.commit(writes);
        metrics.committed(writes.length, performance.now() - beganAt);
        confirmed += writes.length;
        damaged.observe(writes, results);
        log.recovered();
        return results;
      } catch (cause) {
        metrics.commitFailed();
        damaged.commitFailed(cause);
        if ((cause as StoreUnavailable).isPartial) throw cause;
        failed += writes.length;
        log.failed(cause);
        throw cause;
      } finally {
        inFlight--;
      }
    },
    damagedPlants: () => damaged.count,
    check: async (): Promise<string[]> => [...(await engine.check()), ...damaged.warnings],
    assess: async (): Promise<void> => {
      let [plants, isBad] = [confirmed + failed, failed > confirmed];
      confirmed = failed = 0;
      if (plants === 0) {
        if (failingSince === undefined || inFlight > 0) return;
        inFlight++;
        const [probe] = await Promise.allSettled([engine.probe()]);
        inFlight--;
        isBad = probe.status === 'rejected';
      }
      failingSince = isBad ? (failingSince ?? performance.now()) : undefined;
    },
    failingMs: (): number => (failingSince === undefined ? 0 : performance.now() - failingSince),
  };
}
