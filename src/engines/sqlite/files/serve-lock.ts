import { chownSync, existsSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { StoreRejected } from '../../../core/commit/store-errors.ts';
import { DATABASE_OPTION } from '../../store-rejections.ts';
import { isBusy, isInternal, orRejected } from '../sqlite-errors.ts';
import { createFile, identityOf, prepareStoreFile } from './store-files.ts';

/** Time for a reader that opens the store at this moment to create the write-ahead log. */
const READER_OPENS_MS = 100;

/** The file that is locked, and its device and inode. */
export interface LockFile {
  path: string;
  identity: string | undefined;
}

export interface ServeLock extends Disposable {
  file: LockFile;
  /** Whether the last process with the lock was killed: a service, or a `copy` into the store. */
  isAfterCrash: boolean;
}

/**
 * Locks a store, so that only one service at a time uses it. Each of two services would mistake the
 * commits of the other one for its own.
 *
 * The lock is an exclusive transaction on a separate file beside the database, so readers and the
 * command line can still open the database. Only a user who may write to the folder can take the
 * lock. The name of the lock file comes from the real path of the database, so a link leads to the
 * same lock. POSIX locks belong to the inode, so they also hold between mounts and containers on
 * one machine. The system releases locks however their process ends
 * (https://sqlite.org/lockingv3.html).
 *
 * @throws {StoreRejected}
 */
export function takeServeLock(path: string): ServeLock {
  return orRejected(path, () => {
    const real = prepareStoreFile(path);
    using parts = new DisposableStack();
    const { file, isAfterCrash } = parts.use(takeLockFile(real));
    rejectOtherName(real);
    const taken = parts.move();
    return { file, isAfterCrash, [Symbol.dispose]: () => taken.dispose() };
  });
}

/**
 * Takes the lock, also again after somebody has deleted its file.
 *
 * @param path the real path of the database
 * @throws {StoreRejected} if a service has the lock, or the lock file cannot be used
 */
export function takeLockFile(path: string): ServeLock {
  const file = lockFileOf(path);
  try {
    makeLockFile(file, path);
    using parts = new DisposableStack();
    // The journal exists during the transaction:
    // https://sqlite.org/tempfiles.html#rollback_journals
    const isAfterCrash = existsSync(`${file}-journal`);
    const lock = parts.use(new DatabaseSync(file, { timeout: 0 }));
    lock.exec('BEGIN EXCLUSIVE');
    const taken = parts.move();
    return {
      file: { path: file, identity: identityOf(file) },
      isAfterCrash,
      [Symbol.dispose]: () => taken.dispose(),
    };
  } catch (error) {
    if (isBusy(error)) throw servedError(path, file, error);
    if (isInternal(error) || !existsSync(file)) throw error;
    const { message } = error as Error;
    throw new StoreRejected(`the lock file ${file} cannot be used (${message})`, {
      advice: 'make the user of the service its owner, or delete it while no service runs',
      cause: error,
    });
  }
}

function lockFileOf(path: string): string {
  return `${path}-serve-lock`;
}

function makeLockFile(file: string, path: string): void {
  const isNew = !existsSync(file);
  // Only the owner may read it: a reader could take a shared lock and block the service.
  createFile(file);
  if (!isNew || process.geteuid?.() !== 0) return;
  // SQLite does the same with its own files. Otherwise a command of root could block the service.
  const { uid, gid } = statSync(path);
  chownSync(file, uid, gid);
}

/**
 * Rejects a database file that a service opened under an earlier name. That service uses the
 * write-ahead log of the earlier name, and two logs corrupt a file
 * (https://sqlite.org/howtocorrupt.html, section 2.5).
 *
 * Each connection has a shared lock on the database file. A connection by this name also has its
 * write-ahead log beside this name. So if there is no log here, but an exclusive lock is
 * impossible, the file is open by another name. SQLite takes the exclusive lock at the first read
 * in exclusive locking mode (https://sqlite.org/wal.html#noshm).
 */
function rejectOtherName(path: string): void {
  const isOpenedHere = () => existsSync(`${path}-wal`) || existsSync(`${path}-shm`);
  if (isOpenedHere()) return;
  using database = new DatabaseSync(path, { timeout: READER_OPENS_MS });
  try {
    database.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA user_version');
  } catch (error) {
    // The engine will meet any other failure again, and has a better message for it.
    if (isBusy(error) && !isOpenedHere()) throw servedError(path, path, error);
  }
}

function servedError(path: string, lockedFile: string, cause: unknown): StoreRejected {
  const fault = `another plant-store service is running on ${path}${lockOwnerText(lockedFile)}`;
  return new StoreRejected(fault, {
    advice: `stop it first, or name another file with ${DATABASE_OPTION}`,
    cause,
  });
}

/**
 * Names the process that locks a file, if Linux shows it. It does not show processes of other
 * containers (https://man7.org/linux/man-pages/man5/proc_locks.5.html).
 */
function lockOwnerText(file: string): string {
  try {
    const { dev, ino } = statSync(file, { bigint: true });
    // The encoding of makedev(3), which also has bits above the 16 of most devices.
    const major = (dev >> 8n) & 0xfffn;
    const minor = (dev & 0xffn) | ((dev >> 12n) & 0xfff00n);
    const device = [major, minor].map(each => each.toString(16).padStart(2, '0')).join(':');
    const locks = readFileSync('/proc/locks', 'latin1').matchAll(/ (\d+) (\S+:\d+) \d+ \d+$/gm);
    const holder = locks.find(
      ([, pid, locked]) => locked === `${device}:${ino}` && Number(pid) !== process.pid,
    );
    return holder === undefined ? '' : ` (process ${holder[1]})`;
  } catch {
    // Only Linux has `/proc/locks`, and Node's permission model hides it.
    return '';
  }
}

/**
 * Names the service that uses the store at this path. It only reads the lock file, because a lock
 * would block a service that starts, and delete the journal of a service that crashed.
 *
 * @returns a text such as `a plant-store service (process 7)`; undefined if there is no service, or
 *   this user may not read the lock file
 */
export function runningService(path: string): string | undefined {
  if (!wasServed(path)) return undefined;
  const file = lockFileOf(realpathSync(path));
  try {
    using database = new DatabaseSync(file, { readOnly: true, timeout: 0 });
    database.exec('PRAGMA user_version');
  } catch (error) {
    if (isBusy(error)) return `a plant-store service${lockOwnerText(file)}`;
  }
  return undefined;
}

/** Whether a service has ever used the store at this path. */
export function wasServed(path: string): boolean {
  return existsSync(path) && existsSync(lockFileOf(realpathSync(path)));
}

/** Rejects a store that a service uses. @throws {StoreRejected} */
export function rejectIfServed(path: string): void {
  // Taking the lock would create its file, so a store without this file is not locked.
  if (wasServed(path)) takeServeLock(path)[Symbol.dispose]();
}
