import type { NewPlant, Outcome } from '../contract/plant.ts';
import type { NewStoredToken, StoredToken } from '../contract/stored-token.ts';

/** What an id that is stored with other content gets: a further revision, or an error. A setting. */
export type RepeatedIdRule = 'revise' | 'reject';

/** A plant on its way into the store, and the id of the token it came with. */
export interface PlantWrite {
  plant: NewPlant;
  recordedBy: number;
}

/** The answer to one write: kept as this revision, or refused because the id is taken. */
export type WriteResult =
  | { outcome: Outcome; revision: number; rejected?: never }
  | { rejected: 'idTaken'; outcome?: never; revision?: never };

/** A plant that was not confirmed. `storeUnavailable`: whether it is stored is unknown. */
export type NotConfirmed = { rejected: 'busy' | 'storeUnavailable' | 'shuttingDown' };

/** What the operation needs of a store. */
export interface PlantWriter {
  /** Settles once the plant is durable or was refused; never throws. */
  write(write: PlantWrite): Promise<WriteResult | NotConfirmed>;
}

/** What an engine can tell of itself; what it does not have is left out, always or never. */
export interface EngineStatistics {
  /** How often a commit was flushed to the disk, and how long that took in all, in ms. */
  flushes?: { count: number; totalMs: number };
  /** Length of the write-ahead log's file. */
  logBytes?: number;
  /** Whether the write-ahead log could not be copied into the database file when that was tried last. */
  isCheckpointFailing?: boolean;
  /** What the file system of the store has left for this user. */
  diskFreeBytes?: number;
  /** Connections to the server that are open or being opened. */
  connections?: number;
}

/** How far group commit is. */
export interface CommitStatistics {
  /** Plants that wait for a commit or are in one. */
  plantsInFlight: number;
  /** How many may be, as far as the pace is known; the next one is answered 503. */
  plantsInFlightMax: number;
  /** Batches that the engine works on. */
  batchesInFlight: number;
  /** Whether the last commit failed; the next plant that is sent finds out whether that is over. */
  isCommitFailing: boolean;
}

/** What a storage engine does. Group commit is written once, above every engine; an engine makes a batch durable. */
export interface StorageEngine {
  /** How many batches the engine works on side by side. */
  readonly commitsInFlightMax: number;
  /** There was no store at this address before. */
  readonly isNew: boolean;
  /**
   * Writes a batch, the plants of one id in order, and settles once all of it is durable.
   *
   * @returns one result for each write, in the same order
   * @throws {StoreUnavailable} when not all is known to be durable: any of the batch may be kept, or nothing
   */
  commit(writes: readonly PlantWrite[]): Promise<WriteResult[]>;
  /**
   * @returns what an operator should know though the store works, such as a database that is not set up to be durable:
   *   a sentence each, the same text as long as the matter is the same; none when all is well
   * @throws {StoreUnavailable} when the store cannot be reached
   */
  check(): Promise<readonly string[]>;
  /** What the engine can tell of itself without asking the store; never throws. */
  statistics(): Promise<EngineStatistics>;
  hasPlants(): Promise<boolean>;
  /** @returns the token as it is stored, or undefined when its label is taken */
  createToken(token: NewStoredToken): Promise<StoredToken | undefined>;
  /**
   * The tokens made or revoked after this change number, in the order of the changes; 0 asks for all.
   *
   * @returns at most `TOKENS_AT_A_TIME_MAX` of them; where there are fewer, these are the last
   */
  tokensChangedSince(changeNumber: number): Promise<StoredToken[]>;
  /**
   * A text that changes with every token made or revoked on another connection, also where the change number was given
   * before: after a failover or a restored backup. It may change after any other commit, too.
   */
  tokensFingerprint(): Promise<string>;
  /** @returns the token as it is now, or undefined when no token has this label */
  revokeToken(label: string, revokedAt: number): Promise<StoredToken | undefined>;
  /** Notes the day (`YYYY-MM-DD`) on which these tokens were last accepted. */
  recordTokenUse(tokenIds: number[], day: string): Promise<void>;
  close(): Promise<void>;
}

/** The store did not do what it was asked. The cause is for the log, never for a client. */
export class StoreUnavailable extends Error {
  override name = 'StoreUnavailable';
}

/** The store cannot be opened as it stands; the message says what to do about it. */
export class StoreRejected extends Error {
  override name = 'StoreRefused';
}

/** There is no plant store at this address. */
export class StoreMissing extends StoreRejected {}

/** One revision of a plant, as it is stored. */
export interface PlantRevision {
  plant: NewPlant;
  revision: number;
  /** Milliseconds since 1970 UTC. */
  recordedAt: number;
  /** The id of the token it came with; one that was copied in from elsewhere may name a token that is not here. */
  recordedBy: number;
}

/** Reads a store, beside a service that may be writing to it. */
export interface PlantReader extends AsyncDisposable {
  /** The revisions of one plant, oldest first; none when the id is not stored. */
  revisionsOf(id: bigint): Promise<PlantRevision[]>;
  /**
   * Every revision in the order of ids, then revisions, as the store was when the first one was asked for, in constant
   * memory. Other questions may be asked meanwhile.
   */
  revisions(): AsyncIterable<PlantRevision>;
  /** How many revisions there are; undefined when that takes too long to find out. */
  countRevisions(): Promise<number | undefined>;
  tokens(): Promise<StoredToken[]>;
  /** Tells this store from others, whichever address leads to it; undefined when the engine does not say. */
  identity(): Promise<string | undefined>;
}

/** What a store does to become the copy of another one. */
export interface CopyTarget extends AsyncDisposable {
  /**
   * Adds revisions, in the order of their keys, in one transaction, and settles once it is durable. Nothing is ever
   * written over. One that is here already, the same in every column, is taken for done where a statement of a copy that
   * was killed can still arrive.
   *
   * @throws {StoreRefused} when one is here with other content, or something else wrote it meanwhile
   * @throws {StoreUnavailable} all of them may be kept, or nothing
   */
  insertRevisions(revisions: readonly PlantRevision[]): Promise<void>;
  /**
   * Brings tokens to the state they have in the other store, in one transaction. Each that is new, was revoked or expires
   * at another time gets the next change number of this store, in this order, so that services that run on it see the
   * change. A revocation is never undone.
   *
   * @throws {StoreRefused} when something else changed them meanwhile
   */
  putTokens(tokens: readonly StoredToken[]): Promise<void>;
}

/** A row of the target of a copy is not as the copy found it. */
export function changedMeanwhile(what: string): StoreRejected {
  return new StoreRejected(
    `something else wrote ${what} of the target meanwhile; stop the services on it, and copy again`,
  );
}
