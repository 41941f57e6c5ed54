import type { StorageEngine } from '../engines/storage-engine.ts';
import { KnownDamage } from './known-damage.ts';
import type { Metrics } from './metrics.ts';
import { monitoredCommits } from './monitored-commits.ts';
import type { ServiceLog } from './rate-limited-log.ts';
import { type StoreState, storeStateOf } from './store-warnings.ts';

/** Interval at which warnings reach the log, so that the log does not depend on `/readyz`. */
const STATE_READ_INTERVAL_MS = 10_000;
const COMMITS_ASSESSED_INTERVAL_MS = 1_000;

/** Monitors a store for operators: failed commits, warnings and damage. */
export class StoreMonitor {
  readonly damage: KnownDamage;
  /** `commit` calls the engine, and reports to the metrics and the log. */
  readonly commits: ReturnType<typeof monitoredCommits>;
  /** Asks the store at most once per second. It waits for a limited time, and never throws. */
  readonly readState: () => Promise<StoreState>;

  constructor(engine: StorageEngine, metrics: Metrics, log: ServiceLog) {
    this.damage = new KnownDamage(engine.tables, log);
    this.commits = monitoredCommits(engine, metrics, this.damage, log);
    this.readState = storeStateOf(this.commits.readWarnings, log);
  }

  /** Watches the store until the result is disposed, which must be before the store closes. */
  watch(): Disposable {
    const timers = [
      setInterval(() => void this.commits.assess(), COMMITS_ASSESSED_INTERVAL_MS),
      setInterval(() => void this.readState(), STATE_READ_INTERVAL_MS),
    ];
    return {
      [Symbol.dispose]() {
        for (const timer of timers) clearInterval(timer);
      },
    };
  }
}
