import { repeat, SYSTEM_CLOCK } from '../../core/clock.ts';
import type { StorageEngine } from '../../engines/storage-engine.ts';
import type { ServiceLog } from '../log/rate-limited-log.ts';
import type { Metrics } from '../metrics.ts';
import { DAMAGE, KnownDamage } from './known-damage.ts';
import { MonitoredCommits } from './monitored-commits.ts';
import { type StoreState, storeStateReader } from './store-state.ts';

/** Interval at which warnings reach the log, so that the log does not depend on `/readyz`. */
const STATE_READ_INTERVAL_MS = 10_000;
const COMMITS_ASSESSED_INTERVAL_MS = 1_000;

/** Monitors a store for operators: failed commits, warnings and damage. */
export class StoreMonitor {
  readonly damage: KnownDamage;
  readonly commits: MonitoredCommits;
  #firstPlantAt: number | undefined;
  /** Asks the store at most once per second. It waits for a limited time, and never throws. */
  readonly readState: () => Promise<StoreState>;

  constructor(engine: StorageEngine, metrics: Metrics, log: ServiceLog) {
    this.damage = new KnownDamage(engine.operatorTables, log);
    this.commits = new MonitoredCommits(engine, metrics, this.damage, log);
    this.readState = storeStateReader(async () => {
      const warnings = await engine.warnings();
      await this.damage.refresh();
      this.#firstPlantAt ??= await engine.firstPlantAt();
      return this.damage.isKnown ? [DAMAGE, ...warnings] : warnings;
    }, log);
  }

  /** About when the store got its first plant, in ms since 1970; undefined: it had none lately. */
  get firstPlantAt(): number | undefined {
    return this.#firstPlantAt;
  }

  /** Monitors the store until the result is disposed, which must be before the store closes. */
  watch(): Disposable {
    const timers = new DisposableStack();
    timers.use(repeat(SYSTEM_CLOCK, () => void this.commits.assess(), COMMITS_ASSESSED_INTERVAL_MS));
    timers.use(repeat(SYSTEM_CLOCK, () => void this.readState(), STATE_READ_INTERVAL_MS));
    return timers;
  }
}
