import * as fs from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { StoreRejected } from '../../../core/commit/store-errors.ts';
import { flush } from '../../flush.ts';
import { DATABASE_OPTION } from '../../store-rejections.ts';

/** Timeout for the lock of another process. The command line locks the store only briefly. */
export const LOCK_TIMEOUT_MS = 2_000;

/** https://man7.org/linux/man-pages/man5/proc_pid_mountinfo.5.html, only on Linux. */
const MOUNTS = '/proc/self/mountinfo';

/**
 * Creates the file of a store if needed, also where a symbolic link leads.
 *
 * @returns the path of the file itself: SQLite puts the write-ahead log there, not beside the link
 * @throws {StoreRejected} when it may have a second name
 */
export function prepareStoreFile(path: string): string {
  rejectMissingFolder(path);
  rejectUnusableFile(path);
  createFile(path);
  return fs.realpathSync(path);
}

/**
 * Rejects what is no file, and a database file that may have a second name. SQLite derives the name
 * of the write-ahead log from the name of the file. A file with two names has two logs, which
 * corrupts it (https://sqlite.org/howtocorrupt.html, section 2.5).
 *
 * @throws {StoreRejected}
 */
export function rejectUnusableFile(path: string): void {
  const stats = fs.statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return;
  if (!stats.isFile()) {
    const what = stats.isDirectory() ? 'a folder' : 'not a file';
    throw new StoreRejected(`${path} is ${what}`, {
      advice: `name a file, such as ${join(path, 'plant-store.db')}`,
    });
  }
  if (stats.nlink > 1) {
    throw new StoreRejected(`${path} is one of ${stats.nlink} names (hard links) of the same file`, {
      advice: 'keep only one of them',
    });
  }
  if (isMountPoint(fs.realpathSync(path))) {
    throw new StoreRejected(`${path} is mounted as a single file, so it has a second name elsewhere`, {
      advice: 'mount its folder instead',
    });
  }
}

function isMountPoint(path: string): boolean {
  let mounts: string;
  try {
    mounts = fs.readFileSync(MOUNTS, 'utf8');
  } catch {
    return false;
  }
  // The kernel writes space, tab, line feed and backslash in octal: `\040`.
  const escaped = path.replace(/[ \t\n\\]/g, each => `\\${each.charCodeAt(0).toString(8).padStart(3, '0')}`);
  return mounts.split('\n').some(line => line.split(' ')[4] === escaped);
}

function rejectMissingFolder(path: string): void {
  const folder = dirname(resolve(path));
  if (!fs.existsSync(folder))
    throw new StoreRejected(`the folder ${folder} does not exist`, {
      advice: `create it, or correct ${DATABASE_OPTION}`,
    });
}

/**
 * Creates the folder of a store if it is missing, and flushes its parent folder. A flush of a file
 * would not make the name of the folder durable.
 */
export function makeFolderOf(path: string): void {
  const folder = dirname(resolve(path));
  if (fs.existsSync(folder)) return;
  // `recursive` accepts a folder that another process has created meanwhile.
  fs.mkdirSync(folder, { recursive: true });
  flush(dirname(folder));
}

/** Device and inode, which identify a file under any name; undefined if there is no file. */
export function identityOf(path: string): string | undefined {
  const stats = fs.statSync(path, { throwIfNoEntry: false, bigint: true });
  return stats && `${stats.dev}:${stats.ino}`;
}

/**
 * Creates the file of a store, which only its owner may read. SQLite gives the log the same mode.
 * The mode of an existing file changes only if the file is empty, because it then becomes a store.
 *
 * An existing file is not even opened. A process that closes a file loses all its locks on the
 * file, including those of its SQLite connections (https://sqlite.org/howtocorrupt.html, section
 * 2.2).
 */
export function createFile(path: string): void {
  const stats = fs.statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) fs.closeSync(fs.openSync(path, 'a', 0o600));
  else if (stats.isFile() && stats.size === 0 && (stats.mode & 0o077) !== 0) fs.chmodSync(path, 0o600);
}
