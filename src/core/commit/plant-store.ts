import type { NewPlant, Outcome } from '../contract/plant.ts';
import type { StoredToken } from '../tokens/stored-token.ts';
import type { TraceContext } from '../trace-context.ts';

/** The store of commands without --database. Only its folder is created if it does not exist. */
export const DEFAULT_SQLITE_PATH = './data/plant-store.db';
export const DEFAULT_SANDBOX_PATH = './sandbox/plant-store.db';

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

/** Statistics of an engine. An engine either always or never has a given field. */
export interface EngineStatistics {
  /** Number of flushed commits, and the total time of their flushes. */
  flushes?: { count: number; totalMs: number };
  walBytes?: number;
  /** Whether the last copy of the write-ahead log into the database file failed. */
  isCheckpointFailing?: boolean;
  /** Free space for this user in the file system of the store, and its size. */
  diskFreeBytes?: number;
  diskBytes?: number;
  /** Connections to the server, open or being opened. */
  connections?: number;
}

/** The result of a command that found faults contains this, before the first one. */
export const FAULTS_FOUND = 'FAULTS FOUND: ';

/** A run of a command that the operator should know of, or damage that was met last. */
export interface CommandRun {
  command: 'backup' | 'verify' | 'damage';
  /** Milliseconds since 1970 UTC. */
  endedAt: number;
  result: string;
}

export interface CommitStatistics {
  /** Plants that are queued or in a batch. */
  plantsInFlight: number;
  /** Limit of the plants in flight, from the measured rate. The next plant is rejected with 503. */
  plantsInFlightMax: number;
  batchesInFlight: number;
}

/** The last schema step of a store before it was opened, or 0 if it did not exist, and now. */
export interface SchemaSteps {
  before: number;
  now: number;
}

/** @returns undefined if the store is new, or already had this schema */
export function schemaUpdateOf({ before, now }: SchemaSteps): string | undefined {
  if (before === 0 || before === now) return undefined;
  return `the schema of the store was updated from step ${before} to step ${now}`;
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
  /** Does not access the database. Never throws. */
  statistics(): Promise<EngineStatistics>;
}

/** An operation of the store failed. The cause goes into the log, never to a client. */
export class StoreUnavailable extends Error {
  override name = 'StoreUnavailable';
  /** Only the plants of one worker failed. `check` warns of it, so commits do not log it. */
  isPartial = false;
}

/** Our own code failed in an operation of the store. A retry would probably fail in the same way. */
export class StoreInternalError extends Error {
  override name = 'StoreInternalError';

  /** @param cause the unexpected error */
  constructor(cause: unknown) {
    super(`unexpected internal error (${(cause as Error).message}); report it`, { cause });
  }
}

/** Rows cannot be read, since the files of the store are damaged. */
export class StoreDamaged extends StoreUnavailable {}

/** The store cannot be opened or used as it is. The message tells the user what to do. */
export class StoreRejected extends Error {
  override name = 'StoreRejected';
}

export class StoreMissing extends StoreRejected {}

export interface PlantRevision {
  plant: NewPlant;
  revision: number;
  /** Milliseconds since 1970 UTC. */
  recordedAt: number;
  /** The id of the token that sent it. A copied revision may name a token that this store lacks. */
  recordedBy: number;
  /** A reader does not check it. Code that uses the content calls `isIntact` first. */
  checksum: bigint;
}

/** Selects plants by their latest revisions: all that match every given member. */
export interface PlantFilter {
  id?: bigint | undefined;
  /** A part of the name. Case and accents do not matter. */
  name?: string | undefined;
  tag?: string | undefined;
  from?: bigint | undefined;
}

export interface PlantPage {
  /** The latest revision of each plant, in the order of ids. */
  plants: PlantRevision[];
  /** Where the next page begins; undefined only if everything was searched. */
  next: bigint | undefined;
  /** About how many revisions were searched; 0 for a filter with an id. */
  searched: number;
}

/** Searches the store of a service in short statements, which hold up no writes and checkpoints. */
export interface PlantSearch extends AsyncDisposable {
  /**
   * Searches from `filter.from` on, until `limit` plants are found or the time is over, but always
   * makes progress. A page has fewer plants when their text is very long.
   * @throws {StoreUnavailable}
   */
  page(filter: PlantFilter, limit: number, timeLimitMs: number): Promise<PlantPage>;
  /** The last revisions of one plant, oldest first. They are fewer if their text is long. */
  revisionsOf(id: bigint, limit: number): Promise<PlantRevision[]>;
  bytes(): Promise<number | undefined>;
  /** How many revisions the store has, or about how many; undefined if that would take long. */
  revisions(): Promise<number | undefined>;
}

/** Reads whole stores for commands. A service may write to the store at the same time. */
export interface PlantReader extends AsyncDisposable {
  /**
   * Reads every revision in the order of ids, then revisions, in constant memory. All come from one
   * snapshot, taken at the first read.
   */
  revisions(from?: bigint): AsyncIterable<PlantRevision>;
  /**
   * As `revisions`, but in short statements, so the write-ahead log can be restarted while the
   * caller is slow. Later revisions may come from later states.
   */
  revisionsInSlices(from?: bigint): AsyncIterable<PlantRevision>;
  /** Takes a while: it counts all rows. The bytes are those on disk, if the engine can tell. */
  size(): Promise<{ plants: number; revisions: number; bytes: number | undefined }>;
  tokens(): Promise<StoredToken[]>;
  lastRuns(): Promise<CommandRun[]>;
  /** The largest `recordedAt` up to this time; 0 if there is none. */
  newestTime(until: number): Promise<number>;
  /** Checks pages and indexes. @returns a text for each fault; undefined if that is not possible */
  structureFaults(): Promise<string[] | undefined>;
  /** Identifies this store, whatever its address is; undefined when the engine has no identity. */
  identity(): Promise<string | undefined>;
}

export interface CopyTarget extends AsyncDisposable {
  /**
   * Inserts revisions in the order of their keys, in one transaction. Settles when it is durable.
   * @throws {StoreRejected} when a row exists: another program, or a killed copy, inserted it late
   * @throws {StoreUnavailable} when all of them may be stored, or none
   */
  insertRevisions(revisions: readonly PlantRevision[]): Promise<void>;
  /**
   * Gives tokens the state of the source, in one transaction. Each change gets the next change
   * number. A token that another program changed meanwhile stays: the comparison finds it.
   */
  putTokens(tokens: readonly StoredToken[]): Promise<void>;
}

export function concurrentChange(what: string): StoreRejected {
  return new StoreRejected(
    `another program wrote ${what} of the target during the copy; stop the services on it, and copy again`,
  );
}
