import { randomUUID } from 'node:crypto';
import { statSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import type { NewStoredToken, StoredToken } from '../../contract/stored-token.ts';
import type { RepeatedIdRule } from '../plant-store.ts';
import type { Batch, BatchResults } from './batch.ts';
import { openForWriting } from './database.ts';
import { flushLogAnew } from './log-flush.ts';
import { PlantTable } from './plant-table.ts';
import * as tokenTable from './token-table.ts';

/** What a SQLite store is opened with. */
export interface SqliteSettings {
  /** Of the database file. */
  path: string;
  repeatedIdRule: RepeatedIdRule;
}

/** A write-ahead log of this length, 200 MiB, is copied into the database file whatever that holds up. */
const LOG_PAGES_MAX = 50_000;
/** A log that grew beyond this, because a reader was in the way, is cut to it when it is begun anew: 64 MiB. */
const LOG_BYTES_KEPT_MAX = 64 * 1024 * 1024;

/** A file, whatever its name: its place on the disk. */
type FileIdentity = string | undefined;

interface OpenDatabase {
  /** Tells this connection from every other. */
  opening: string;
  database: DatabaseSync;
  plants: PlantTable;
  /** Of the write-ahead log, known from the first commit; it stays as long as the connection. */
  log: FileIdentity;
}

/** The database, or its write-ahead log, is no longer the file that was opened. */
export class StoreGone extends Error {
  constructor(path: string) {
    super(
      `${path} or its log was deleted, moved or replaced; put it back, or stop the service and start it again`,
    );
  }
}

function identityOf(path: string): FileIdentity {
  const stats = statSync(path, { throwIfNoEntry: false, bigint: true });
  return stats && `${stats.dev}:${stats.ino}`;
}

/**
 * A SQLite store as the writer thread holds it: one connection, one operation at a time.
 *
 * After any failure the connection is given up, and the next operation opens the file anew. What SQLite or the
 * kernel still has in memory after a failed write or flush is not to be trusted. A commit that failed was not published
 * in the index of the write-ahead log, so its place in the log is written again by the next one; and where that index was
 * lost too, and the commit is found in the log, all of the log is written again before anything rests on it
 * (log-flush.ts).
 */
export class SqliteStore {
  readonly #settings: SqliteSettings;
  #open: OpenDatabase | undefined;
  /** Of the database file that was opened first: no other one is ever taken for it. */
  #file: FileIdentity;
  #isGone = false;

  constructor(settings: SqliteSettings) {
    this.#settings = settings;
  }

  check(): void {
    this.#run(({ database }) => database.prepare('SELECT count(*) FROM sqlite_schema').get());
  }

  commit(batch: Batch): BatchResults {
    return this.#run(open => {
      if (open.log === undefined) {
        this.#checkFiles(open);
        flushLogAnew(open.database, this.#settings.path);
      }
      const results = open.plants.commit(batch);
      this.#checkFiles(open);
      return results;
    });
  }

  /** Copies what is left of the write-ahead log into the database file, so that the next commit begins it anew. */
  finishCheckpoint(): void {
    this.#run(({ database }) => database.prepare('PRAGMA wal_checkpoint(PASSIVE)').get());
  }

  hasPlants(): boolean {
    return this.#run(
      ({ database }) => database.prepare('SELECT 1 FROM plant_revision LIMIT 1').get() !== undefined,
    );
  }

  createToken(token: NewStoredToken): StoredToken | undefined {
    return this.#run(({ database }) => tokenTable.createToken(database, token));
  }

  tokensChangedSince(changeNumber: number): StoredToken[] {
    return this.#run(({ database }) => tokenTable.tokensChangedSince(database, changeNumber));
  }

  /** Another one after each commit of another connection: nothing else undoes what this one has read. */
  tokensFingerprint(): string {
    return this.#run(({ database, opening }) => {
      // https://sqlite.org/pragma.html#pragma_data_version: to be compared on one connection only.
      const { data_version: version } = database.prepare('PRAGMA data_version').get()!;
      return `${opening} ${version}`;
    });
  }

  revokeToken(label: string, revokedAt: number): StoredToken | undefined {
    return this.#run(({ database }) => tokenTable.revokeToken(database, label, revokedAt));
  }

  recordTokenUse(tokenIds: number[], day: string): void {
    this.#run(({ database }) => tokenTable.recordTokenUse(database, tokenIds, day));
  }

  /**
   * Lets the next operation open the store again, after it threw {@link StoreGone}; until then every one throws it.
   * Connections of one process share what they know of the log: none of another log may be left.
   */
  reopen(): void {
    this.#isGone = false;
  }

  close(): void {
    const open = this.#open;
    this.#open = undefined;
    open?.database.close();
  }

  #run<Result>(operation: (open: OpenDatabase) => Result): Result {
    try {
      if (this.#isGone) throw new StoreGone(this.#settings.path);
      this.#open ??= this.#openDatabase();
      return operation(this.#open);
    } catch (error) {
      if (error instanceof StoreGone) this.#isGone = true;
      this.close();
      throw error;
    }
  }

  #openDatabase(): OpenDatabase {
    const { path, repeatedIdRule } = this.#settings;
    if (this.#file !== undefined && this.#file !== identityOf(path)) throw new StoreGone(path);
    const database = openForWriting(path);
    // Not in the middle of a commit, see checkpoints.ts; only a log that nothing else keeps short.
    database.exec(`PRAGMA wal_autocheckpoint = ${LOG_PAGES_MAX}`);
    // https://sqlite.org/pragma.html#pragma_journal_size_limit
    database.exec(`PRAGMA journal_size_limit = ${LOG_BYTES_KEPT_MAX}`);
    this.#file ??= identityOf(path);
    const plants = new PlantTable(database, repeatedIdRule);
    return { opening: randomUUID(), database, plants, log: undefined };
  }

  /**
   * A file that was deleted, moved or replaced can still be written to, and even flushed, by whoever has it open; what
   * is written then is gone when the process ends. So a commit counts when its files are still where they belong.
   */
  #checkFiles(open: OpenDatabase): void {
    const { path } = this.#settings;
    const log = identityOf(`${path}-wal`);
    open.log ??= log;
    if (log === undefined || log !== open.log || identityOf(path) !== this.#file) throw new StoreGone(path);
  }
}
