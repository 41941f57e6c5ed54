import type { EngineFigures } from '../store/plant-store.ts';

/** The service as it is now, for the operations listener. */
export interface ServiceState {
  /** What an operator should know of the store, a sentence each; undefined while the store cannot be used. */
  storeWarnings: readonly string[] | undefined;
  engine: EngineFigures;
  openConnections: number;
  isShuttingDown: boolean;
  /** Whether the last commit failed; the next plant that is sent finds out whether that is over. */
  isCommitFailing: boolean;
  /** Plants that wait for a commit or are in one, and how many may. */
  plantsUnderWay: number;
  plantsUnderWayMax: number;
  /** Batches that the engine works on. */
  batchesInFlight: number;
  tokensKnown: number;
  /** Whether the last lookup of changes to tokens succeeded. */
  areTokensCurrent: boolean;
}
