import { threadId } from 'node:worker_threads';
import type { RepeatedIdRule } from '../../core/commit/plant-commits.ts';
import { TOKEN_GROUP_SIZE } from '../../core/tokens/stored-token.ts';
import type { SchemaSteps } from '../storage-engine.ts';
import type { Row } from '../tables/table-access.ts';
import type { LockFile } from './files/serve-lock.ts';
import { StoreFileGuard } from './files/store-file-guard.ts';
import { type PackedBatch, packResults, unpackWrites } from './packed-batch.ts';
import { queryRows } from './queries.ts';
import { RevisionTable } from './revision-table.ts';
import { APPLICATION_ID } from './schema.ts';
import { replyToCalls, threadData } from './threads/reply-to-calls.ts';
import { rewriteWal } from './wal-flush.ts';
import { AUTOCHECKPOINT_PAGES, WAL_FILE_MAX_BYTES } from './wal-limits.ts';
import { openForWriting, type WritingDatabase } from './writing-database.ts';

/** Size of a test commit, as large as a full batch. A nearly full disk may have room for less. */
const PROBE_BYTES = 8 * 1024 * 1024;

export interface SqliteSettings {
  /** Path of the database file. */
  path: string;
  repeatedIdRule: RepeatedIdRule;
  /** The locked file of a service; undefined: a command, which needs no lock. */
  lockFile: LockFile | undefined;
}

/** An operation of the writer, and its arguments. */
export type WriterCall = [operation: keyof StoreWriter, ...args: unknown[]];

interface OpenStore extends WritingDatabase {
  plants: RevisionTable;
  /** Unique name of this connection in the process. */
  connection: string;
  /** Whether this connection has written, and so relies on the log. */
  hasWritten: boolean;
}

/**
 * Writes an SQLite store: one connection, one operation at a time.
 *
 * After any failure the connection is closed, and the next operation opens the file again. After a
 * failed write or flush, the memory of SQLite or of the kernel may differ from the disk.
 *
 * SQLite writes a commit into the write-ahead log, flushes the log, and only then enters the commit
 * into the index of the log (https://sqlite.org/walformat.html). Therefore a commit whose flush
 * failed, or whose process was killed before the flush, is in no index, and the next commit
 * overwrites it. But if the index was lost, too, SQLite makes a new one, and may find the commit in
 * the log. Because of this case, the first write of each connection rewrites the whole log
 * ({@link rewriteWal}) before any result depends on it.
 */
export class StoreWriter {
  readonly #settings = threadData as SqliteSettings;
  readonly #files = new StoreFileGuard(this.#settings.path, this.#settings.lockFile);
  #open: OpenStore | undefined;
  /** Number of connections that were opened. */
  #connections = 0;

  schemaSteps(): SchemaSteps {
    return this.#run(open => open.schemaSteps);
  }

  checkSchema(): void {
    this.#run(({ plants }) => plants.checkSchema());
  }

  /** @returns the {@link CommittedBatch}, packed */
  commit(...batch: PackedBatch): string {
    return packResults(this.#write(({ plants }) => plants.commit(unpackWrites(batch))));
  }

  /** Tests whether the log can be written and flushed, and closes the connection of the test. */
  probe(): void {
    // With a cache of one page, SQLite writes pages before a commit. The last PRAGMA is a commit.
    const sql = `PRAGMA busy_timeout = 0; PRAGMA cache_size = 1; BEGIN IMMEDIATE;
      CREATE TABLE probe AS SELECT zeroblob(${PROBE_BYTES}); ROLLBACK; PRAGMA application_id = ${APPLICATION_ID}`;
    this.#run(({ database }) => {
      this.#files.checkIndex();
      database.exec(sql);
    });
    this.#closeConnection();
  }

  /** Needs no lock, so a service can start while another process writes. */
  readRows(text: string, values: unknown[]): Row[] {
    return this.#read(({ database }) => queryRows(database, text, values));
  }

  /** The change is durable when it returns. */
  writeRows(text: string, values: unknown[]): Row[] {
    return this.#write(({ database }) => queryRows(database, text, values));
  }

  /**
   * Makes the rows durable that were read before. A commit of another process can be read only after
   * its flush, except those that this connection found in the log when it was opened.
   */
  confirmRows(): void {
    this.#write(() => {});
  }

  /** Copies the rest of the log into the database file, so that the next commit restarts the log. */
  finishCheckpoint(): void {
    this.#write(({ database }) => database.exec('PRAGMA wal_checkpoint(PASSIVE)'));
  }

  /** Returns fingerprints that all change after each commit of another connection. */
  tokenFingerprints(): Map<number, string> {
    return this.#read(({ database, connection }) => {
      // Versions are comparable on one connection:
      // https://sqlite.org/pragma.html#pragma_data_version
      const { data_version: version } = database.prepare('PRAGMA data_version').get()!;
      const groups = queryRows(database, `SELECT DISTINCT id / ${TOKEN_GROUP_SIZE} FROM token`);
      return new Map(groups.map(([group]) => [Number(group), `${connection} ${version}`]));
    });
  }

  /**
   * Lets the next operation open the store after a file was replaced. The caller first closes all
   * other connections of the process, because they share the state of the old log.
   */
  reopen(): void {
    this.#files.reopen();
  }

  /** Closes the last connection of the process. The caller has closed the others. */
  close(): void {
    this.#closeConnection();
    this.#files.close();
  }

  #read<Result>(read: (open: OpenStore) => Result): Result {
    return this.#run(open => {
      this.#files.checkIndex();
      const result = read(open);
      // A deleted log shows no further commits of other connections.
      if (open.hasWritten) this.#files.checkFiles();
      return result;
    });
  }

  /**
   * Checks the files before and after a write, because a write with another index could overwrite
   * commits of a command. A log that is deleted after the second check is found by the next
   * operation, and the close of the connections saves its commits.
   */
  #write<Result>(write: (open: OpenStore) => Result): Result {
    return this.#run(open => {
      this.#files.checkFiles();
      // The first write of a connection relies on what the log contains.
      if (!open.hasWritten) rewriteWal(open.database, this.#settings.path);
      open.hasWritten = true;
      const result = write(open);
      this.#files.checkFiles();
      return result;
    });
  }

  #run<Result>(operation: (open: OpenStore) => Result): Result {
    try {
      this.#open ??= this.#openStore();
      return operation(this.#open);
    } catch (error) {
      this.#closeConnection();
      throw error;
    }
  }

  #openStore(): OpenStore {
    const { path, repeatedIdRule } = this.#settings;
    this.#files.beforeOpen();
    const opened = openForWriting(path);
    const { database } = opened;
    // A checkpoint by SQLite blocks a commit. It is the fallback when checkpoints.ts fails.
    database.exec(`PRAGMA wal_autocheckpoint = ${AUTOCHECKPOINT_PAGES}`);
    // https://sqlite.org/pragma.html#pragma_journal_size_limit
    database.exec(`PRAGMA journal_size_limit = ${WAL_FILE_MAX_BYTES}`);
    const plants = new RevisionTable(database, repeatedIdRule);
    const connection = `${threadId} ${++this.#connections}`;
    this.#files.opened();
    return { ...opened, plants, connection, hasWritten: false };
  }

  #closeConnection(): void {
    const open = this.#open;
    this.#open = undefined;
    this.#files.beforeClose();
    open?.database.close();
  }
}

const writer = new StoreWriter();

replyToCalls(([operation, ...args]: WriterCall) => {
  const run = writer[operation] as (...args: unknown[]) => unknown;
  return run.apply(writer, args);
});
