import type { NewPlant, Outcome } from '../contract/plant.ts';
import type { TraceContext } from '../trace-context.ts';

/** The setting for an id that exists with other content: add a revision, or reject it. */
export type RepeatedIdRule = 'revise' | 'reject';

/** A plant to store, and the id of the token that sent it. */
export interface PlantWrite {
  plant: NewPlant;
  contentChecksum: bigint;
  recordedBy: number;
  /** The trace of its request. It is not stored. */
  trace?: TraceContext | undefined;
  /** No other connection has sent plants lately, so the event loop may wait for the commit. */
  isOnlySender?: boolean | undefined;
}

/** A plant before its content checksum is made. */
export type NewPlantWrite = Omit<PlantWrite, 'contentChecksum'>;

/** The result of one write. `damaged`: the latest revision is damaged, so it cannot be compared. */
export type WriteResult =
  | { outcome: Outcome; revision: number; rejected?: never }
  | { rejected: 'idTaken' | 'damaged'; outcome?: never; revision?: never };

/** A plant that was not confirmed. After `storeUnavailable` it is unknown whether it is stored. */
export type NotConfirmed = { rejected: 'busy' | 'storeUnavailable' | 'shuttingDown' };

export interface CommitStatistics {
  /** Plants that are queued or in a batch. */
  plantsInFlight: number;
  /** Limit of the plants in flight, from the measured rate. The next plant is rejected with 503. */
  plantsInFlightMax: number;
  batchesInFlight: number;
}

export interface PlantQueue {
  readonly statistics: CommitStatistics;
  /** Makes the checksum. Settles when the plant is durable or rejected. Never throws. */
  write(write: NewPlantWrite): Promise<WriteResult | NotConfirmed>;
  /** Settles when every accepted plant is settled. Further plants are rejected. */
  close(): Promise<void>;
}

export interface PlantCommits {
  /** @param commit calls `commit` of this engine, and may observe it */
  openQueue(commit: PlantCommits['commit']): PlantQueue;
  /**
   * Writes a batch, the plants of one id in order. Settles when the whole batch is durable.
   * @returns one result for each write, in the same order
   * @throws {StoreUnavailable} or {StoreInternalError}; then all, some or no plants of the batch may
   *   be stored
   */
  commit(writes: readonly PlantWrite[]): Promise<WriteResult[]>;
  /** Tests with a durable commit that changes no row. @throws {StoreUnavailable} */
  probe(): Promise<void>;
  /** @returns warnings for the operator, each one sentence @throws {StoreUnavailable} */
  check(): Promise<readonly string[]>;
}
