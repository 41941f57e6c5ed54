import type { PlantCommits, PlantWrite, WriteResult } from '../core/commit/plant-commits.ts';
import { StoreDamaged, type StoreUnavailable } from '../core/commit/store-errors.ts';
import { DAMAGE_WARNING, type KnownDamage } from './known-damage.ts';
import type { Metrics } from './metrics.ts';
import { failureLog, type ServiceLog } from './rate-limited-log.ts';

/** How long a failed commit is shown: on a nearly full disk, only some commits fail. */
const FAILURE_SHOWN_MS = 10_000;

/**
 * Wraps the engine. It reports each commit to the metrics and the log, and measures how long
 * commits have failed.
 *
 * A second is bad when most of its plants were not confirmed, since a nearly full disk still
 * confirms small batches. A service that is not ready gets no plants. So after a bad second, a test
 * commit assesses each second without plants.
 *
 * @returns the wrapped operations; `assess`, which the caller calls every second, and which never
 *   throws; `failingMs`, the time since the first bad second ended, 0 if the last one was not bad
 */
export function monitoredCommits(
  engine: PlantCommits,
  metrics: Metrics,
  damage: KnownDamage,
  log: ServiceLog,
) {
  const confirmations = failureLog(
    details => log.error(details, 'the store does not confirm plants; clients get 503 until it does'),
    () => log.info('the store confirms plants again'),
  );
  let confirmed = 0;
  let failed = 0;
  let failingSince: number | undefined;
  let lastFailure: { cause: unknown; at: number } | undefined;
  /** Batches and test commits that have not ended. */
  let inFlight = 0;
  return {
    commit: async (writes: readonly PlantWrite[]): Promise<WriteResult[]> => {
      const beganAt = performance.now();
      inFlight++;
      try {
        const results = await engine.commit(writes);
        metrics.committed(writes.length, performance.now() - beganAt);
        confirmed += writes.length;
        noticeDamaged(damage, log, writes, results);
        confirmations.recovered();
        return results;
      } catch (cause) {
        metrics.commitFailed();
        const isDamaged = cause instanceof StoreDamaged;
        if (isDamaged) damage.report('a create');
        if ((cause as StoreUnavailable).isPartial) throw cause;
        failed += writes.length;
        // `KnownDamage` reports damage.
        if (!isDamaged) lastFailure = { cause, at: performance.now() };
        confirmations.failed(cause);
        throw cause;
      } finally {
        inFlight--;
      }
    },
    /** Reads the warnings of the engine, and adds known damage. */
    readWarnings: async (): Promise<string[]> => {
      const warnings = await engine.warnings();
      await damage.refresh();
      return damage.isKnown ? [DAMAGE_WARNING, ...warnings] : [...warnings];
    },
    assess: async (): Promise<void> => {
      let [plants, isBad] = [confirmed + failed, failed > confirmed];
      confirmed = failed = 0;
      if (plants === 0) {
        if (failingSince === undefined || inFlight > 0) return;
        inFlight++;
        const [probe] = await Promise.allSettled([engine.probe()]);
        inFlight--;
        isBad = probe.status === 'rejected';
        if (probe.status === 'rejected') lastFailure = { cause: probe.reason, at: performance.now() };
      }
      failingSince = isBad ? (failingSince ?? performance.now()) : undefined;
    },
    /** Why a commit, or a test commit, failed a short time ago; undefined: none did. */
    failure: (): unknown =>
      lastFailure && performance.now() - lastFailure.at < FAILURE_SHOWN_MS ? lastFailure.cause : undefined,
    failingMs: (): number => (failingSince === undefined ? 0 : performance.now() - failingSince),
  };
}

/** Notes a damaged plant that was sent again. The log names the first; `verify` names all. */
function noticeDamaged(
  damage: KnownDamage,
  log: ServiceLog,
  writes: readonly PlantWrite[],
  results: readonly WriteResult[],
): void {
  const index = results.findIndex(result => result.kind === 'rejected' && result.error === 'damaged');
  if (index === -1) return;
  const { id } = writes[index]!.plant;
  const message = `the latest revision of plant ${id} is damaged: its checksum is wrong; creates of this plant get 503`;
  if (!damage.isKnown) log.error({ id: String(id) }, message);
  damage.report('a create');
}
