import * as fs from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { identityOf } from './store-files.ts';

/** A change of a folder within this time of the last one may get the same time. */
const SAME_TIME_MS = 100;
/** Even in a folder that does not change, the files are checked this often. */
const CHECK_INTERVAL_MS = 1_000;
const SECOND_NS = 1_000_000_000n;

/** A file that a connection uses. The check notices that it is no longer at its path. */
export interface UsedFile {
  isInPlace(): boolean;
}

/**
 * The folder of a database. Creating, deleting or replacing a file changes the ctime of its folder,
 * which no program can set (https://man7.org/linux/man-pages/man7/inode.7.html). While the ctime is the
 * same, one `stat` of the folder replaces the checks of four files. They took 8 % of a create of one
 * sender (2026-11-29, `npm run bench -- --against FOLDER`).
 */
export class DatabaseFolder {
  readonly #path: string;
  /** How it was before the last check, if any later change shows. */
  #checked: { stats: fs.BigIntStats; atMs: number } | undefined;

  /** @param databasePath its real path, since a link may lie in another folder */
  constructor(databasePath: string) {
    this.#path = dirname(databasePath);
  }

  /** Calls `check`, which throws if a file was replaced, unless none was since a recent call. */
  checkIfChanged(check: () => void): void {
    const now = Date.now();
    const stats = fs.statSync(this.#path, { throwIfNoEntry: false, bigint: true });
    const last = this.#checked;
    // A mount over one file does not change the folder, so the files are still checked now and then.
    if (stats && last && isSame(stats, last.stats) && Math.abs(now - last.atMs) < CHECK_INTERVAL_MS) return;
    this.#checked = undefined;
    check();
    if (stats !== undefined && isQuiet(stats, now)) this.#checked = { stats, atMs: now };
  }
}

/** Whether the next change gets another time. Some file systems have whole seconds. */
function isQuiet({ ctimeMs, ctimeNs }: fs.BigIntStats, now: number): boolean {
  return ctimeNs % SECOND_NS !== 0n && now - Number(ctimeMs) > SAME_TIME_MS;
}

function isSame(one: fs.BigIntStats, other: fs.BigIntStats): boolean {
  return one.ctimeNs === other.ctimeNs && one.ino === other.ino && one.dev === other.dev;
}

/**
 * Opens a write-ahead log.
 *
 * Linux names the file of a descriptor. A `stat` costs more than its call: after each one, the next
 * write changes the time of the file, and the next flush writes that, too
 * (https://docs.kernel.org/filesystems/multigrain-ts.html). A create of one sender took 9 % longer
 * (2026-11-26, `npm run bench -- --against FOLDER`).
 *
 * @throws an error of the file system, such as ENOENT
 */
export function openWal(path: string): UsedFile & { close(): void } {
  const descriptor = fs.openSync(path, 'r');
  const identity = () => openFileName(descriptor) ?? identityOf(path);
  const before = identity();
  return { isInPlace: () => identity() === before, close: () => fs.closeSync(descriptor) };
}

/**
 * The index of the write-ahead log that SQLite uses, after the first read of a connection.
 *
 * The index has the length of the log and its locks. If it is deleted, the next process makes
 * another one, and both processes write to the same place of the log.
 *
 * The connections of a process share the index, so it may be deleted before this one is opened. So
 * the descriptors of SQLite are searched. We open none: closing it would release the locks of SQLite
 * (https://sqlite.org/howtocorrupt.html, section 2.2).
 *
 * Here a `stat` takes less time than the name of the descriptor. No flush waits for the time of this
 * file, which is only mapped.
 */
export function usedIndex(databasePath: string): UsedFile {
  const path = `${fs.realpathSync(databasePath)}-shm`;
  const identity = identityOf(path);
  const isUsed = identity !== undefined && isOpen(identity);
  return { isInPlace: () => isUsed && identityOf(path) === identity };
}

/** @returns true if that is not known: on another system, or under Node's permission model */
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
 * (https://sqlite.org/wal.html). With a deleted index that loses commits of other processes. A
 * connection that is not the last one does not do so, nor does one that only reads.
 */
export function openLockHolder(path: string): DatabaseSync {
  const holder = new DatabaseSync(pathToFileURL(path), { readOnly: true });
  try {
    holder.prepare('SELECT count(*) FROM sqlite_schema').get();
  } catch {
    // The lock precedes the read, which may fail with a deleted index.
  }
  return holder;
}

/** @returns undefined on another system, and under Node's permission model */
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
    // Another thread has closed it meanwhile.
    return undefined;
  }
}
