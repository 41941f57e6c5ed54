import type { NewPlant, Outcome } from '../contract/plant.ts';
import type { Problem } from '../problem.ts';

/** The setting for an id that exists with other content: add a revision, or reject it. */
export type RepeatedIdRule = 'revise' | 'reject';

/** A plant to queue, and the id of the token that sent it. */
export interface NewPlantWrite {
  plant: NewPlant;
  recordedBy: number;
  /**
   * The number that the latest revision must have, if its content differs; 0: there is no plant.
   * Undefined: it may have any number.
   */
  ifRevision?: number | undefined;
  /** What asked for it, such as a request, for those who observe batches. It is only passed on. */
  origin?: object | undefined;
}

/** A plant to store in a batch. */
export interface PlantWrite extends NewPlantWrite {
  contentChecksum: bigint;
}

/** The plant is durable as this revision. */
export interface Confirmed {
  kind: 'confirmed';
  outcome: Outcome;
  revision: number;
}

/** Nothing was stored. */
export type RejectedWrite =
  /** `damaged`: the latest revision is damaged, so it cannot be compared. */
  | { kind: 'rejected'; error: 'idTaken' | 'damaged' }
  /** The latest revision is not `ifRevision`, but `revision`; 0: there is no plant. */
  | { kind: 'rejected'; error: 'plantChanged'; revision: number };

/**
 * The plant has no result of the engine. After `busy` and `shuttingDown` it is not stored. After
 * `storeUnavailable` it may be stored, unless it left the queue because an earlier batch failed.
 */
export interface NotConfirmed {
  kind: 'notConfirmed';
  error: 'busy' | 'storeUnavailable' | 'shuttingDown';
}

/** The result of one write of a batch. */
export type WriteResult = Confirmed | RejectedWrite;

export interface CommitStatistics {
  /** Plants that are queued or in a batch. */
  plantsInFlight: number;
  /** Limit of the plants in flight, from the measured rate and the limit of the queue. */
  plantsInFlightMax: number;
  /** Whether further plants get 503 now, those of one queue at least. */
  isFull: boolean;
  batchesInFlight: number;
}

export interface PlantQueue {
  readonly statistics: CommitStatistics;
  /** Queues a plant, and computes its content checksum. Resolves with its result. Never rejects. */
  write(write: NewPlantWrite): Promise<WriteResult | NotConfirmed>;
  /** Resolves when every queued plant has its result. Further plants are rejected. */
  close(): Promise<void>;
}

export interface CommitEngine {
  /** @param commit calls `commit` of this engine; the service wraps it to measure each batch */
  openQueue(commit: CommitEngine['commit']): PlantQueue;
  /**
   * Writes a batch, the plants of one id in order. Resolves when the whole batch is durable.
   *
   * @returns one result for each write, in the same order
   * @throws {StoreUnavailable} or {StoreInternalError}
   * @throws {StoreRejected} the schema was changed, or another service has taken the lock of the store.
   *   After any error, all, some or no plants of the batch may be stored.
   */
  commit(writes: readonly PlantWrite[]): Promise<WriteResult[]>;
  /** Tests the store with a durable commit that changes no row. @throws {StoreUnavailable} */
  probe(): Promise<void>;
  /**
   * Inspects the store.
   *
   * @returns warnings for the operator
   * @throws {StoreUnavailable}
   */
  warnings(): Promise<readonly Problem[]>;
}
