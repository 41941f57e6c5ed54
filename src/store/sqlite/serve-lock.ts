import { existsSync, realpathSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { StoreRejected } from '../plant-store.ts';
import { explainFailure, makeFile, makeFolder } from './database.ts';

/** https://sqlite.org/rescode.html#busy */
const SQLITE_BUSY = 5;

/**
 * Locks a store, so that only one service at a time uses it. Two would each take the other's
 * commits for their own.
 *
 * The lock is an exclusive transaction on a separate file beside the database. So readers and the
 * command line can still open the database. The system releases the lock when the process ends.
 *
 * @param path path of the database file; the file and its folder are created if needed
 * @returns a function that releases the lock
 * @throws {StoreRejected} when another service has the lock, or the folder is not writable
 */
export function takeServeLock(path: string): () => void {
  return explainFailure(path, () => {
    makeFolder(dirname(resolve(path)));
    // The file must exist before its real path can be resolved through symbolic links.
    makeFile(path);
    const lockPath = `${realpathSync(path)}-serve-lock`;
    // Only the owner may read it: a reader could take a shared lock and block the service.
    makeFile(lockPath);
    const lock = new DatabaseSync(lockPath, { timeout: 0 });
    try {
      lock.exec('BEGIN EXCLUSIVE');
    } catch (error) {
      lock.close();
      if ((error as { errcode?: number }).errcode !== SQLITE_BUSY) throw error;
      throw new StoreRejected(
        `another plant-store service is running on ${path}; stop it first, or name another file with --database`,
        { cause: error },
      );
    }
    return () => lock.close();
  });
}

/**
 * Checks that no service uses the store. Creates nothing.
 *
 * @throws {StoreRejected} when a service uses it
 */
export function checkServeLock(path: string): void {
  if (existsSync(path) && existsSync(`${realpathSync(path)}-serve-lock`)) takeServeLock(path)();
}
