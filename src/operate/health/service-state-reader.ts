import type { PlantQueue } from '../../core/commit/plant-commits.ts';
import type { Attached } from '../../core/extension-points.ts';
import type { TokenCache } from '../../core/tokens/token-cache.ts';
import type { StorageEngine } from '../../engines/storage-engine.ts';
import type { RecentRates } from './recent-rates.ts';
import type { ServiceState } from './service-state.ts';
import type { StoreMonitor } from './store-monitor.ts';

/** The parts of a service whose state operators see. */
interface ServiceStateSources {
  engine: StorageEngine;
  /** Whether the last service of this store was killed. */
  isAfterCrash: boolean;
  monitor: StoreMonitor;
  tokens: TokenCache;
  queue: PlantQueue;
  rates: RecentRates;
  server: { readonly openConnections: number };
  attached: Attached;
}

/** Reads the state of a service, for `/readyz`, `/metrics` and the console. */
export class ServiceStateReader {
  readonly #sources: ServiceStateSources;
  readonly #restartedAt: number | null;
  /** The service sets it when it begins to close. */
  isShuttingDown = false;

  constructor(sources: ServiceStateSources) {
    this.#sources = sources;
    this.#restartedAt = sources.isAfterCrash ? Date.now() : null;
  }

  /** Reads the state. It waits for the store for a limited time, and never throws. */
  async read(): Promise<ServiceState> {
    const { engine, monitor, tokens, queue, rates, server, attached } = this.#sources;
    return {
      // The queue is read before the awaits below, because a slow store would hide the waiting
      // plants.
      ...queue.statistics,
      tokens,
      store: await monitor.readState(),
      engine: await engine.statistics(),
      commits: monitor.commits.health,
      isDamaged: monitor.damage.isKnown,
      lastRuns: monitor.damage.lastRuns,
      firstPlantAt: monitor.firstPlantAt,
      restartedAt: this.#restartedAt,
      rates: rates.rates,
      commitSeconds: rates.commitSeconds,
      warnings: [
        ...attached.validators.flatMap(validator => validator.warning() ?? []),
        ...attached.wrappers.map(({ warning }) => warning),
      ],
      openConnections: server.openConnections,
      isShuttingDown: this.isShuttingDown,
    };
  }
}
