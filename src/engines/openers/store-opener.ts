import type { RepeatedIdRule } from '../../core/commit/plant-commits.ts';
import type { CopyTarget } from '../copy-target.ts';
import type { PlantReader } from '../plant-reader.ts';
import type { PlantSearch } from '../search/plant-search.ts';
import type { StorageEngine } from '../storage-engine.ts';

export interface ServedSettings {
  repeatedIdRule: RepeatedIdRule;
  /** How many connections carry plants into PostgreSQL. */
  connections: number;
}

/** The store of a service. Its disposal closes the engine, and releases the lock of the service. */
export interface ServedStore extends AsyncDisposable {
  engine: StorageEngine;
  /** Whether the last service, or `copy` into the store, was killed. Unknown on PostgreSQL. */
  isAfterCrash: boolean;
}

/** Opens the store at one address. Each engine has its own class for this. */
export interface StoreOpener {
  /**
   * Opens the store for a service, or creates it. On SQLite it also takes the lock by which at most
   * one service uses the store.
   *
   * @param onWait is called with a log message if the first connection to PostgreSQL takes longer
   *   than 1.5 s
   * @throws {StoreRejected}
   */
  openServed(settings: ServedSettings, onWait: (message: string) => void): Promise<ServedStore>;
  /**
   * Opens the store for a command that writes, beside a running service.
   *
   * @throws {StoreMissing} if a missing store is rejected
   * @throws {StoreRejected}
   */
  openForCommand(missing: 'create' | 'reject'): Promise<StorageEngine>;
  /** Opens an existing store for reading. @throws {StoreMissing} @throws {StoreRejected} */
  openReader(): Promise<PlantReader>;
  /**
   * Opens the store of a service for searches beside its creates, on SQLite with a thread of its
   * own. The thread and the connections start with the first search, so a missing store fails only
   * then.
   */
  openSearch(): Promise<PlantSearch>;
  /** Opens the store as the target of a copy, or creates it. @throws {StoreRejected} */
  openCopyTarget(): Promise<CopyTarget>;
  /** The file of the store; undefined if the store is in a database server. */
  readonly file: StoreFile | undefined;
}

/** Tells who uses the file of an SQLite store. A database server cannot tell services from other clients. */
export interface StoreFile {
  /**
   * Names the service that uses the store now, such as `a plant-store service (process 7)`.
   *
   * @returns undefined if there is none, or it is unknown
   */
  runningService(): string | undefined;
  /** @throws {StoreRejected} if a service uses the store now */
  rejectIfServed(): void;
  /** Whether a service has ever used the store. */
  wasServed(): boolean;
  /**
   * Whether a program has opened the store for writing since `backup` made it.
   *
   * @throws {StoreMissing} @throws {StoreRejected}
   */
  wasOpenedForWriting(): boolean;
}
