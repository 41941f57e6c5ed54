import { existsSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { StoreFileReplaced } from '../sqlite-errors.ts';
import { type LockFile, type ServeLock, takeLockFile } from './serve-lock.ts';
import { identityOf } from './store-files.ts';
import {
  DatabaseFolder,
  openLockHolder,
  openWal,
  type UsedFile,
  type UsedWal,
  usedIndex,
} from './used-files.ts';

/** The files that a connection uses. */
interface ConnectionFiles {
  folder: DatabaseFolder;
  /** The index of the write-ahead log. */
  index: UsedFile;
  /** The write-ahead log; undefined before the first check of all files. */
  wal: UsedWal | undefined;
}

/**
 * Checks that the files of a store are still at their paths. The writer of the store has one
 * connection at a time, and closes it after each error.
 *
 * A database or log that was deleted, moved or replaced can still be written and flushed, but its
 * data is lost when the process ends. With another index, a connection would miss commits of
 * commands, or overwrite them. For both reasons, no connection may be opened after the first such
 * finding until `reopen`.
 */
export class StoreFileGuard {
  readonly #path: string;
  /** Identity of the database file that was opened first. No other file may replace it. */
  #database: string | undefined;
  #open: ConnectionFiles | undefined;
  #isReplaced = false;
  /**
   * Keeps SQLite from taking another connection for the last one, which would delete the log. It is
   * open from the loss of an index until no connection of the process uses that index.
   */
  #lockHolder: DatabaseSync | undefined;
  #lockFile: LockFile | undefined;
  /** The lock that replaced the lost one. This reference protects it from garbage collection. */
  #newLock: ServeLock | undefined;

  /**
   * @param path path of the database file
   * @param lockFile the locked file of a service; undefined: a command, which needs no lock
   */
  constructor(path: string, lockFile: LockFile | undefined) {
    this.#path = path;
    this.#lockFile = lockFile;
  }

  /** Checks that a connection may be opened. @throws {StoreFileReplaced} */
  beforeOpen(): void {
    if (this.#isReplaced) this.#reject();
    if (this.#database !== undefined && this.#database !== identityOf(this.#path)) this.#reject();
  }

  /** Guards the files of a connection that was opened, and has read from the database. */
  opened(): void {
    const path = this.#path;
    this.#database ??= identityOf(path);
    this.#open = { folder: new DatabaseFolder(path), index: usedIndex(path), wal: undefined };
  }

  /** Checks the file that each read depends on. @throws {StoreFileReplaced} */
  checkIndex(): void {
    if (!this.#open!.index.isInPlace()) this.#reject();
  }

  /**
   * Checks all files, and takes the lock again if its file was deleted. While the folder of the
   * database is unchanged, so are the files in it.
   *
   * @throws {StoreFileReplaced}
   * @throws {StoreRejected} if another service has the lock
   */
  checkFiles(): void {
    const open = this.#open!;
    open.folder.checkIfChanged(() => this.#checkEachFile(open));
  }

  /** Takes care that the close of a connection does not delete the log if only its index was lost. */
  beforeClose(): void {
    const open = this.#open;
    this.#open = undefined;
    if (open === undefined) return;
    if (!open.index.isInPlace() && this.#hasOnlyLostIndex(open))
      this.#lockHolder ??= openLockHolder(this.#path);
    open.wal?.close();
  }

  /** Lets the store be opened again. The caller has closed all connections of the process. */
  reopen(): void {
    this.#isReplaced = false;
    this.close();
  }

  /** The caller has closed all connections of the process. */
  close(): void {
    this.#lockHolder?.close();
    this.#lockHolder = undefined;
  }

  #checkEachFile(open: ConnectionFiles): void {
    open.wal ??= this.#openWal();
    const isInPlace =
      open.wal.isInPlace() && open.index.isInPlace() && identityOf(this.#path) === this.#database;
    if (!isInPlace) this.#reject();
    if (this.#lockFile !== undefined && this.#lockFile.identity !== identityOf(this.#lockFile.path))
      this.#lockAgain();
  }

  #openWal(): UsedWal {
    try {
      return openWal(`${this.#path}-wal`);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') this.#reject();
      throw error;
    }
  }

  /**
   * Whether only the index was lost. If so, the close must not copy the log, because the next
   * connection recovers from it. If the log was deleted, too, the close of the last connection
   * copies its commits into the database file, because nothing else has them.
   */
  #hasOnlyLostIndex({ wal }: ConnectionFiles): boolean {
    const hasWal = wal === undefined ? existsSync(`${this.#path}-wal`) : wal.isInPlace();
    return hasWal && identityOf(this.#path) === this.#database;
  }

  #lockAgain(): void {
    this.#newLock?.[Symbol.dispose]();
    this.#newLock = takeLockFile(this.#path);
    this.#lockFile = this.#newLock.file;
  }

  #reject(): never {
    this.#isReplaced = true;
    throw new StoreFileReplaced(`${this.#path} or its -wal or -shm file was deleted, moved or replaced`, {
      advice: 'restore the file, or stop the service and start it again',
    });
  }
}
