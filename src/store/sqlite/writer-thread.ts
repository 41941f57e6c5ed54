import { statSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { parentPort, threadId, workerData } from 'node:worker_threads';
import type { NewStoredToken } from '../../contract/stored-token.ts';
import { type RepeatedIdRule, StoreRejected } from '../plant-store.ts';
import type { Batch, BatchResults } from './batch.ts';
import { openForWriting, unavailable } from './database.ts';
import { AUTOCHECKPOINT_PAGES, WAL_FILE_BYTES_MAX } from './limits.ts';
import { PlantTable } from './plant-table.ts';
import * as tokenTable from './token-table.ts';
import { rewriteWal } from './wal-flush.ts';

/** What a SQLite store is opened with. */
export interface SqliteSettings {
  /** Of the database file. */
  path: string;
  repeatedIdRule: RepeatedIdRule;
}

/** Names an operation of the writer, with its arguments; `call` is repeated in the answer. */
export interface WriterCall {
  call: number;
  operation: keyof StoreWriter;
  args: unknown[];
}

/** The answer to a call: the result, or what went wrong, since an error loses its class between threads. */
export interface WriterReply {
  call: number;
  result?: unknown;
  failure?: { message: string; isRejection: boolean; isFileReplaced: boolean };
}

/** A file, whatever its name: its place on the disk. */
type FileIdentity = string | undefined;

interface OpenStore {
  database: DatabaseSync;
  plants: PlantTable;
  /** Tells this connection from every other of the process. */
  connection: string;
  /** Of the write-ahead log, known from the first commit; it stays as long as the connection. */
  log: FileIdentity;
}

/** The database, or its write-ahead log, is no longer the file that was opened. */
class StoreFileReplaced extends Error {}

function gone(path: string): StoreFileReplaced {
  const advice = 'put it back, or stop the service and start it again';
  return new StoreFileReplaced(`${path} or its log was deleted, moved or replaced; ${advice}`);
}

function identityOf(path: string): FileIdentity {
  const stats = statSync(path, { throwIfNoEntry: false, bigint: true });
  return stats && `${stats.dev}:${stats.ino}`;
}

/**
 * Writes a SQLite store: one connection, one operation at a time.
 *
 * After any failure the connection is closed, and the next operation opens the file again: what SQLite or the kernel
 * still has in memory after a failed write or flush is not to be trusted. A commit that failed was not published in the
 * index of the write-ahead log, so the next commit writes over its place in the log. Where that index was lost too, the
 * commit may be found in the log; then all of the log is written again before anything rests on it (log-flush.ts).
 */
export class StoreWriter {
  readonly #settings: SqliteSettings;
  #open: OpenStore | undefined;
  /** Of the database file that was opened first: no other one is ever taken for it. */
  #file: FileIdentity;
  #isFileReplaced = false;
  /** How many were opened. */
  #connections = 0;

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
        rewriteWal(open.database, this.#settings.path);
      }
      const results = open.plants.commit(batch);
      this.#checkFiles(open);
      return results;
    });
  }

  /** Copies what is left of the write-ahead log into the database file, so that the next commit restarts it. */
  finishCheckpoint(): void {
    this.#run(({ database }) => database.prepare('PRAGMA wal_checkpoint(PASSIVE)').get());
  }

  hasPlants(): boolean {
    const sql = 'SELECT 1 FROM plant_revision LIMIT 1';
    return this.#run(({ database }) => database.prepare(sql).get() !== undefined);
  }

  readonly createToken = (token: NewStoredToken) =>
    this.#run(({ database }) => tokenTable.createToken(database, token));
  readonly tokensChangedSince = (changeNumber: number) =>
    this.#run(({ database }) => tokenTable.tokensChangedSince(database, changeNumber));
  readonly revokeToken = (label: string, revokedAt: number) =>
    this.#run(({ database }) => tokenTable.revokeToken(database, label, revokedAt));
  readonly recordTokenUse = (tokenIds: number[], day: string) =>
    this.#run(({ database }) => tokenTable.recordTokenUse(database, tokenIds, day));

  /** Another one after each commit of another connection: nothing else undoes what this one has read. */
  tokensFingerprint(): string {
    return this.#run(open => {
      const { database, connection, log } = open;
      // In a log that was deleted nothing changes any more.
      if (log !== undefined) this.#checkFiles(open);
      // https://sqlite.org/pragma.html#pragma_data_version: to be compared on one connection only.
      const { data_version: version } = database.prepare('PRAGMA data_version').get()!;
      return `${connection} ${version}`;
    });
  }

  /**
   * Lets the next operation open the store again after it was gone; until then every operation fails. Connections of one
   * process share what they know of the log, so no connection to another log may be open.
   */
  reopen(): void {
    this.#isFileReplaced = false;
  }

  close(): void {
    const open = this.#open;
    this.#open = undefined;
    open?.database.close();
  }

  #run<Result>(operation: (open: OpenStore) => Result): Result {
    try {
      if (this.#isFileReplaced) throw gone(this.#settings.path);
      this.#open ??= this.#openStore();
      return operation(this.#open);
    } catch (error) {
      this.#isFileReplaced = error instanceof StoreFileReplaced;
      this.close();
      throw error;
    }
  }

  #openStore(): OpenStore {
    const { path, repeatedIdRule } = this.#settings;
    if (this.#file !== undefined && this.#file !== identityOf(path)) throw gone(path);
    const database = openForWriting(path);
    // SQLite's own checkpoint would hold up a commit, see checkpoints.ts; it is for a log that nothing else keeps short.
    database.exec(`PRAGMA wal_autocheckpoint = ${AUTOCHECKPOINT_PAGES}`);
    // https://sqlite.org/pragma.html#pragma_journal_size_limit
    database.exec(`PRAGMA journal_size_limit = ${WAL_FILE_BYTES_MAX}`);
    this.#file ??= identityOf(path);
    const plants = new PlantTable(database, repeatedIdRule);
    return { database, plants, connection: `${threadId} ${++this.#connections}`, log: undefined };
  }

  /**
   * A file that was deleted, moved or replaced can still be written to, and even flushed, by whoever has it open; what
   * is written then is gone when the process ends. So a commit counts when its files are still where they belong.
   */
  #checkFiles(open: OpenStore): void {
    const { path } = this.#settings;
    const log = identityOf(`${path}-wal`);
    open.log ??= log;
    if (log === undefined || log !== open.log || identityOf(path) !== this.#file) throw gone(path);
  }
}

const writer = new StoreWriter(workerData as SqliteSettings);

parentPort!.on('message', ({ call, operation, args }: WriterCall) => {
  parentPort!.postMessage(reply(call, operation, args));
});

function reply(call: number, operation: keyof StoreWriter, args: unknown[]): WriterReply {
  try {
    const run = writer[operation] as (...args: unknown[]) => unknown;
    return { call, result: run.apply(writer, args) };
  } catch (error) {
    const isRejection = error instanceof StoreRejected;
    const isFileReplaced = error instanceof StoreFileReplaced;
    return { call, failure: { message: unavailable(error).message, isRejection, isFileReplaced } };
  }
}
