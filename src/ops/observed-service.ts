import type { EngineFigures } from '../store/plant-store.ts';

/** Whether the store can be used now, and what an operator should know though it can: a sentence each. */
export type StoreState = { reachable: true; warnings: readonly string[] } | { reachable: false };

/** What the operations listener asks of the service, each time that somebody asks it; nothing here throws. */
export interface ObservedService {
  /** Asks the store, and waits for its answer a bounded time. */
  storeState(): Promise<StoreState>;
  engineFigures(): Promise<EngineFigures>;
  openConnections(): Promise<number>;
  isShuttingDown(): boolean;
  /** Whether the last commit failed; the next plant that is sent finds out whether that is over. */
  isCommitFailing(): boolean;
  /** Plants that wait for a commit or are in one, how many may, and batches that the engine works on. */
  load(): { plantsUnderWay: number; plantsUnderWayMax: number; batchesInFlight: number };
  /** Tokens the service knows, and whether the last look for changes to them succeeded. */
  tokens(): { known: number; areCurrent: boolean };
}
