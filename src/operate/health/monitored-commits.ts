import type { CommitEngine, PlantWrite, WriteResult } from '../../core/commit/plant-commits.ts';
import { StoreDamaged, StorePartlyUnavailable } from '../../core/commit/store-errors.ts';
import type { ResponseObserver } from '../../core/extension-points.ts';
import { type FailureLog, failureLog, type ServiceLog } from '../log/rate-limited-log.ts';
import type { Metrics } from '../metrics.ts';
import type { KnownDamage } from './known-damage.ts';
import type { CommitHealth } from './service-state.ts';

/** How long a failed commit is shown: on a nearly full disk, only some commits fail. */
const FAILURE_SHOWN_MS = 10_000;

/**
 * Wraps the commits of an engine. It reports each to the metrics and the log, and measures how long
 * commits have failed.
 *
 * A second is bad when most of its plants were not confirmed, since a nearly full disk still
 * confirms small batches. A service that is not ready gets no plants. So after a bad second, a test
 * commit assesses each second without plants.
 */
export class MonitoredCommits {
  readonly #engine: CommitEngine;
  readonly #metrics: Metrics;
  readonly #damage: KnownDamage;
  readonly #log: ServiceLog;
  readonly #confirmations: FailureLog;
  /** Plants since the last assessment. */
  #confirmed = 0;
  #failed = 0;
  /** When the first bad second ended (monotonic clock); undefined: the last one was not bad. */
  #failingSince: number | undefined;
  #lastFailure: { cause: unknown; at: number } | undefined;
  /** Batches and test commits that have not ended. */
  #inFlight = 0;
  #observers: readonly ResponseObserver[] = [];

  constructor(engine: CommitEngine, metrics: Metrics, damage: KnownDamage, log: ServiceLog) {
    this.#engine = engine;
    this.#metrics = metrics;
    this.#damage = damage;
    this.#log = log;
    this.#confirmations = failureLog(
      details => log.error(details, 'the store does not confirm plants; clients get 503 until it does'),
      () => log.info('the store confirms plants again'),
    );
  }

  /** Shows each further batch to these observers. */
  showTo(observers: readonly ResponseObserver[]): void {
    this.#observers = observers;
  }

  /** As `commit` of the engine. */
  async commit(writes: readonly PlantWrite[]): Promise<WriteResult[]> {
    const beganAt = performance.now();
    this.#inFlight++;
    try {
      const results = await this.#engine.commit(writes);
      this.#metrics.committed(writes.length, performance.now() - beganAt);
      this.#confirmed += writes.length;
      this.#reportDamaged(writes, results);
      this.#confirmations.recovered();
      return results;
    } catch (cause) {
      this.#metrics.commitFailed();
      const isDamaged = cause instanceof StoreDamaged;
      if (isDamaged) this.#damage.report('a create');
      // The warnings of the store report this already.
      if (cause instanceof StorePartlyUnavailable) throw cause;
      this.#failed += writes.length;
      // Operators see damage as a check of its own.
      if (!isDamaged) this.#lastFailure = { cause, at: performance.now() };
      this.#confirmations.failed(cause);
      throw cause;
    } finally {
      this.#inFlight--;
      for (const observer of this.#observers) observer.batchEnded?.(writes, beganAt);
    }
  }

  /** Assesses the last second. The caller calls it every second. It never throws. */
  async assess(): Promise<void> {
    const plants = this.#confirmed + this.#failed;
    let isBad = this.#failed > this.#confirmed;
    this.#confirmed = 0;
    this.#failed = 0;
    if (plants === 0) {
      if (this.#failingSince === undefined || this.#inFlight > 0) return;
      isBad = !(await this.#doesTestCommitSucceed());
    }
    this.#failingSince = isBad ? (this.#failingSince ?? performance.now()) : undefined;
  }

  async #doesTestCommitSucceed(): Promise<boolean> {
    this.#inFlight++;
    try {
      await this.#engine.probe();
      return true;
    } catch (cause) {
      this.#lastFailure = { cause, at: performance.now() };
      return false;
    } finally {
      this.#inFlight--;
    }
  }

  get health(): CommitHealth {
    const now = performance.now();
    const last = this.#lastFailure;
    return {
      failingMs: this.#failingSince === undefined ? 0 : now - this.#failingSince,
      recentFailure: last !== undefined && now - last.at < FAILURE_SHOWN_MS ? last : undefined,
    };
  }

  /** Reports a damaged plant that was sent again. The log names the first; `verify` names all. */
  #reportDamaged(writes: readonly PlantWrite[], results: readonly WriteResult[]): void {
    const index = results.findIndex(result => result.kind === 'rejected' && result.error === 'damaged');
    if (index === -1) return;
    const { id } = writes[index]!.plant;
    const message = `the latest revision of plant ${id} is damaged: its checksum is wrong; creates of this plant get 503`;
    if (!this.#damage.isKnown) this.#log.error({ id: String(id) }, message);
    this.#damage.report('a create');
  }
}
