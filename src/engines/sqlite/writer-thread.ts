import { existsSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { threadId } from 'node:worker_threads';
import type { RepeatedIdRule } from '../../core/commit/plant-commits.ts';
import { TOKEN_GROUP_SIZE } from '../../core/tokens/stored-token.ts';
import type { Row } from '../revision-rows.ts';
import type { SchemaSteps } from '../storage-engine.ts';
import { replyToCalls, threadData } from './called-thread.ts';
import { type LockFile, type ServeLock, takeLockFile } from './files/serve-lock.ts';
import { identityOf } from './files/store-files.ts';
import {
  DatabaseFolder,
  openLockHolder,
  openWal,
  type UsedFile,
  type UsedWal,
  usedIndex,
} from './files/used-files.ts';
import { type Batch, packResults, unpackWrites } from './packed-batch.ts';
import { queryRows } from './queries.ts';
import { RevisionTable } from './revision-table.ts';
import { APPLICATION_ID } from './schema.ts';
import { StoreFileReplaced } from './sqlite-errors.ts';
import { rewriteWal } from './wal-flush.ts';
import { AUTOCHECKPOINT_PAGES, WAL_FILE_BYTES_MAX } from './wal-limits.ts';
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
  folder: DatabaseFolder;
  /** The index of the write-ahead log. */
  index: UsedFile;
  /** The write-ahead log; undefined before the first change of the connection. */
  wal: UsedWal | undefined;
}

function fileReplacedError(path: string): StoreFileReplaced {
  return new StoreFileReplaced(`${path} or its -wal or -shm file was deleted, moved or replaced`, {
    advice: 'restore the file, or stop the service and start it again',
  });
}

/**
 * Writes an SQLite store: one connection, one operation at a time.
 *
 * After any failure the connection is closed, and the next operation opens the file again. After a
 * failed write or flush, the memory of SQLite or of the kernel may differ from the disk.
 *
 * SQLite writes a commit into the write-ahead log, flushes the log, and only then enters the commit
 * into the index of the log (https://sqlite.org/walformat.html). So a commit whose flush failed, or
 * whose process was killed before the flush, is in no index, and the next commit overwrites it. If
 * the index was lost, too, SQLite makes a new one, and may find the commit in the log. So the first
 * write of each connection rewrites the whole log ({@link rewriteWal}) before any result depends on it.
 */
export class StoreWriter {
  readonly #settings = threadData as SqliteSettings;
  #open: OpenStore | undefined;
  /** Identity of the database file that was opened first. No other file may replace it. */
  #file: string | undefined;
  #isFileReplaced = false;
  /**
   * Keeps SQLite from taking another connection for the last one, which would delete the log. It is
   * open from the loss of an index until no connection of the process uses that index.
   */
  #lockHolder: DatabaseSync | undefined;
  #lockFile = this.#settings.lockFile;
  /** The lock that replaced the lost one. This reference protects it from garbage collection. */
  #newLock: ServeLock | undefined;
  /** Number of connections that were opened. */
  #connections = 0;

  schemaSteps(): SchemaSteps {
    return this.#run(open => open.schemaSteps);
  }

  checkSchema(): void {
    this.#run(({ plants }) => plants.checkSchema());
  }

  /** @returns the {@link CommittedBatch}, packed */
  commit(...batch: Batch): string {
    return this.#run(open => {
      this.#prepareWrite(open);
      const committed = open.plants.commit(unpackWrites(batch));
      this.#checkFiles(open);
      return packResults(committed);
    });
  }

  /** Tests whether the log can be written and flushed, and closes the connection of the test. */
  probe(): void {
    // With a cache of one page, SQLite writes pages before a commit. The last PRAGMA is a commit.
    const sql = `PRAGMA busy_timeout = 0; PRAGMA cache_size = 1; BEGIN IMMEDIATE;
      CREATE TABLE probe AS SELECT zeroblob(${PROBE_BYTES}); ROLLBACK; PRAGMA application_id = ${APPLICATION_ID}`;
    this.#run(open => {
      this.#checkIndex(open);
      open.database.exec(sql);
    });
    this.#closeConnection();
  }

  /** Needs no lock, so a service can start while another process writes. */
  readRows(text: string, values: unknown[]): Row[] {
    return this.#run(open => {
      this.#checkIndex(open);
      const rows = queryRows(open.database, text, values);
      if (open.wal !== undefined) this.#checkFiles(open);
      return rows;
    });
  }

  /** The change is durable when it returns. */
  writeRows(text: string, values: unknown[]): Row[] {
    return this.#run(open => {
      this.#prepareWrite(open);
      const rows = queryRows(open.database, text, values);
      this.#checkFiles(open);
      return rows;
    });
  }

  /** Copies the rest of the log into the database file, so that the next commit restarts the log. */
  finishCheckpoint(): void {
    this.writeRows('PRAGMA wal_checkpoint(PASSIVE)', []);
  }

  /** Returns fingerprints that all change after each commit of another connection. */
  tokenFingerprints(): Map<number, string> {
    return this.#run(open => {
      const { database, connection, wal } = open;
      this.#checkIndex(open);
      // A deleted log shows no further commits of other connections.
      if (wal !== undefined) this.#checkFiles(open);
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
    this.#isFileReplaced = false;
    this.#endLockHolder();
  }

  /** Closes the last connection of the process. The caller has closed the others. */
  close(): void {
    this.#closeConnection();
    this.#endLockHolder();
  }

  #endLockHolder(): void {
    this.#lockHolder?.close();
    this.#lockHolder = undefined;
  }

  #closeConnection(): void {
    const open = this.#open;
    this.#open = undefined;
    if (open && !open.index.isInPlace() && this.#hasOnlyLostIndex(open))
      this.#lockHolder ??= openLockHolder(this.#settings.path);
    open?.wal?.close();
    open?.database.close();
  }

  #run<Result>(operation: (open: OpenStore) => Result): Result {
    try {
      if (this.#isFileReplaced) throw fileReplacedError(this.#settings.path);
      this.#open ??= this.#openStore();
      return operation(this.#open);
    } catch (error) {
      // Until `reopen`, all operations fail at once.
      this.#isFileReplaced = error instanceof StoreFileReplaced;
      this.#closeConnection();
      throw error;
    }
  }

  #openStore(): OpenStore {
    const { path, repeatedIdRule } = this.#settings;
    if (this.#file !== undefined && this.#file !== identityOf(path)) throw fileReplacedError(path);
    const opened = openForWriting(path);
    const { database } = opened;
    // A checkpoint by SQLite blocks a commit. It is the fallback when checkpoints.ts fails.
    database.exec(`PRAGMA wal_autocheckpoint = ${AUTOCHECKPOINT_PAGES}`);
    // https://sqlite.org/pragma.html#pragma_journal_size_limit
    database.exec(`PRAGMA journal_size_limit = ${WAL_FILE_BYTES_MAX}`);
    this.#file ??= identityOf(path);
    const plants = new RevisionTable(database, repeatedIdRule);
    const connection = `${threadId} ${++this.#connections}`;
    const folder = new DatabaseFolder(path);
    return { ...opened, plants, connection, folder, index: usedIndex(path), wal: undefined };
  }

  /** Checks the files, because a write with another index could overwrite commits of a command. */
  #prepareWrite(open: OpenStore): void {
    // The check of the files opens the log.
    const isFirst = open.wal === undefined;
    this.#checkFiles(open);
    // The first commit of a connection relies on what the log contains.
    if (isFirst) rewriteWal(open.database, this.#settings.path);
  }

  /** With another index, this connection would miss commits of commands, or overwrite them. */
  #checkIndex({ index }: OpenStore): void {
    if (!index.isInPlace()) throw fileReplacedError(this.#settings.path);
  }

  /**
   * Checks that the files are still at their paths. A database or log that was deleted, moved or
   * replaced can still be written and flushed, but its data is lost when the process ends. With
   * another index, another process may have overwritten the data. While the folder of the database
   * is unchanged, so are the files in it. A write checks before and after its commit. A log that is
   * deleted after the second check is found by the next operation, and the close of the connections
   * saves its commits.
   */
  #checkFiles(open: OpenStore): void {
    open.folder.checkIfChanged(() => this.#checkEachFile(open));
  }

  #checkEachFile(open: OpenStore): void {
    const { path } = this.#settings;
    try {
      open.wal ??= openWal(`${path}-wal`);
    } catch (error) {
      throw (error as NodeJS.ErrnoException).code === 'ENOENT' ? fileReplacedError(path) : error;
    }
    const isInPlace = open.wal.isInPlace() && open.index.isInPlace() && identityOf(path) === this.#file;
    if (!isInPlace) throw fileReplacedError(path);
    if (this.#lockFile !== undefined && this.#lockFile.identity !== identityOf(this.#lockFile.path))
      this.#lockAgain();
  }

  /**
   * Whether only the index was lost. Then the close must not copy the log, from which the next
   * connection recovers. If the log was deleted, too, the close of the last connection copies its
   * commits into the database file, because nothing else has them.
   */
  #hasOnlyLostIndex({ wal }: OpenStore): boolean {
    const { path } = this.#settings;
    const hasWal = wal === undefined ? existsSync(`${path}-wal`) : wal.isInPlace();
    return hasWal && identityOf(path) === this.#file;
  }

  /** Takes the lock again after its file was deleted. @throws {StoreRejected} if another service has it */
  #lockAgain(): void {
    this.#newLock?.[Symbol.dispose]();
    this.#newLock = takeLockFile(this.#settings.path);
    this.#lockFile = this.#newLock.file;
  }
}

const writer = new StoreWriter();

replyToCalls(([operation, ...args]: WriterCall) => {
  const run = writer[operation] as (...args: unknown[]) => unknown;
  return run.apply(writer, args);
});
