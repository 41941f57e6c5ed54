import * as fs from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { identityOf } from './store-files.ts';

/** Two changes of a folder within this time may get the same ctime. */
const SAME_TIME_MS = 100;
/** Even in a folder that does not change, the files are checked this often. */
const CHECK_INTERVAL_MS = 1_000;
const SECOND_NS = 1_000_000_000n;

/** A file that a connection uses. */
export interface UsedFile {
  /** Whether the file is still at its path. */
  isInPlace(): boolean;
}

/** The write-ahead log, open until `close`. */
export interface UsedWal extends UsedFile {
  close(): void;
}

/**
 * The folder of a database. Creating, deleting or replacing a file changes the ctime of its folder,
 * which no program can set (https://man7.org/linux/man-pages/man7/inode.7.html). While the ctime is
 * the same, one `stat` of the folder replaces the checks of four files (docs/performance.md).
 */
export class DatabaseFolder {
  readonly #path: string;
  /** The folder before the last check; undefined if a later change might not change its ctime. */
  #checked: { stats: fs.BigIntStats; atMs: number } | undefined;

  /** @param databasePath its real path, since a link may lie in another folder */
  constructor(databasePath: string) {
    this.#path = dirname(databasePath);
  }

  /** Calls `check`, unless the folder is unchanged. `check` throws if a file was replaced. */
  checkIfChanged(check: () => void): void {
    const now = Date.now();
    const stats = fs.statSync(this.#path, { throwIfNoEntry: false, bigint: true });
    const last = this.#checked;
    // A mount over one file does not change the folder, so the files are still checked at times.
    if (stats && last && isSame(stats, last.stats) && Math.abs(now - last.atMs) < CHECK_INTERVAL_MS) return;
    this.#checked = undefined;
    check();
    if (stats !== undefined && isQuiet(stats, now)) this.#checked = { stats, atMs: now };
  }
}

/** Whether the next change gets another ctime. Some file systems store whole seconds only. */
function isQuiet({ ctimeMs, ctimeNs }: fs.BigIntStats, now: number): boolean {
  return ctimeNs % SECOND_NS !== 0n && now - Number(ctimeMs) > SAME_TIME_MS;
}

function isSame(one: fs.BigIntStats, other: fs.BigIntStats): boolean {
  return one.ctimeNs === other.ctimeNs && one.ino === other.ino && one.dev === other.dev;
}

/**
 * Opens a write-ahead log.
 *
 * It checks the name that Linux has for the descriptor, because `stat` makes commits slower. After
 * a `stat`, the next write changes the time of the file, and the next flush writes this time, too
 * (https://docs.kernel.org/filesystems/multigrain-ts.html); docs/performance.md has what it takes.
 *
 * @throws an error of the file system, such as ENOENT
 */
export function openWal(path: string): UsedWal {
  const descriptor = fs.openSync(path, 'r');
  const identity = () => openFileName(descriptor) ?? identityOf(path);
  const before = identity();
  return {
    isInPlace: () => identity() === before,
    close: () => fs.closeSync(descriptor),
  };
}

/**
 * The index of the write-ahead log that SQLite uses, after the first read of a connection.
 *
 * The index contains the length of the log and its locks. If it is deleted, the next process
 * creates another index, and both processes write to the same place of the log.
 *
 * The connections of a process share the index, so it may be deleted before this connection opens.
 * Therefore this function searches the descriptors of SQLite. It opens none itself, because closing
 * it would release the locks of SQLite (https://sqlite.org/howtocorrupt.html, section 2.2).
 *
 * The check of the index uses `stat`, which takes less time than the name of a descriptor. It slows
 * down no flush, because the index is only mapped.
 */
export function usedIndex(databasePath: string): UsedFile {
  const path = `${fs.realpathSync(databasePath)}-shm`;
  const identity = identityOf(path);
  const isUsed = identity !== undefined && isOpen(identity);
  return { isInPlace: () => isUsed && identityOf(path) === identity };
}

/** @returns true if unknown: on another system than Linux, or under Node's permission model */
function isOpen(identity: string): boolean {
  let descriptors: string[];
  try {
    descriptors = fs.readdirSync('/proc/self/fd');
  } catch {
    return true;
  }
  return descriptors.some(each => identityOfOpen(Number(each)) === identity);
}

/**
 * Opens a connection that only holds the shared lock of the database, until it is closed.
 *
 * The last connection that closes copies the log into the database and deletes it
 * (https://sqlite.org/wal.html). With a deleted index, this would lose commits of other processes.
 * While the holder is open, no other connection is the last one. The holder only reads, so it does
 * not copy the log either.
 */
export function openLockHolder(path: string): DatabaseSync {
  const holder = new DatabaseSync(pathToFileURL(path), { readOnly: true });
  try {
    holder.prepare('SELECT count(*) FROM sqlite_schema').get();
  } catch {
    // SQLite takes the lock before the read, which may fail with a deleted index.
  }
  return holder;
}

/** @returns undefined on another system than Linux, and under Node's permission model */
function openFileName(descriptor: number): string | undefined {
  try {
    return fs.readlinkSync(`/proc/self/fd/${descriptor}`);
  } catch {
    return undefined;
  }
}

function identityOfOpen(descriptor: number): string | undefined {
  try {
    const { dev, ino } = fs.fstatSync(descriptor, { bigint: true });
    return `${dev}:${ino}`;
  } catch {
    // Another thread has closed the descriptor in the meantime.
    return undefined;
  }
}
