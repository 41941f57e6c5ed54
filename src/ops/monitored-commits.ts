import {
  type PlantCommits,
  type PlantWrite,
  StoreDamaged,
  type StoreUnavailable,
  type WriteResult,
} from '../store/plant-store.ts';
import type { Metrics } from './metrics.ts';
import { failureLog, type ServiceLog } from './rate-limited-log.ts';

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
export function monitoredCommits(engine: PlantCommits, metrics: Metrics, log: ServiceLog) {
  const confirmations = failureLog(
    details => log.error(details, 'the store does not confirm plants; clients get 503 until it does'),
    () => log.info('the store confirms plants again'),
  );
  const damaged = new DamagedPlants();
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
        damaged.observe(writes, results, log);
        confirmations.recovered();
        return results;
      } catch (cause) {
        metrics.commitFailed();
        damaged.commitFailed(cause);
        if ((cause as StoreUnavailable).isPartial) throw cause;
        failed += writes.length;
        confirmations.failed(cause);
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

/** Ids of damaged plants that are logged and counted. */
const DAMAGED_PLANTS_MAX = 10_000;

const WARNING =
  'stored plants are damaged, so creates of them get 503; the log has their ids; see docs/operate/backup.md, "Damaged stores"';
const UNREADABLE =
  'a part of the store cannot be read, so creates that need it get 503; the log has the cause; see docs/operate/backup.md, "Damaged stores"';

/**
 * The plants that were sent again and whose latest revision is damaged. A plant is logged once, and
 * counted until a commit finds it intact, as after a repair.
 */
class DamagedPlants {
  readonly #ids = new Set<bigint>();
  #isUnreadable = false;

  get count(): number {
    return this.#ids.size;
  }

  /** The texts have no ids, so that each is logged once while its cause lasts. */
  get warnings(): string[] {
    return [...(this.count > 0 ? [WARNING] : []), ...(this.#isUnreadable ? [UNREADABLE] : [])];
  }

  /** The warning stays until the service ends: later commits may not need the damaged part. */
  commitFailed(cause: unknown): void {
    this.#isUnreadable ||= cause instanceof StoreDamaged;
  }

  observe(writes: readonly PlantWrite[], results: readonly WriteResult[], log: ServiceLog): void {
    for (const [index, { rejected }] of results.entries()) {
      const { id } = writes[index]!.plant;
      if (rejected !== 'damaged') {
        // The hash of each bigint takes time, and nearly always no plant is damaged.
        if (this.#ids.size > 0) this.#ids.delete(id);
      } else if (!this.#ids.has(id) && this.count < DAMAGED_PLANTS_MAX) {
        this.#ids.add(id);
        const message = `the latest revision of plant ${id} is damaged: its checksum is wrong; creates of this plant get 503`;
        log.error({ id: String(id) }, message);
      }
    }
  }
}
