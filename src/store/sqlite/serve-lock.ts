import { existsSync, realpathSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { StoreRejected } from '../plant-store.ts';
import { explainFailure, makeFile, makeFolder } from './database.ts';

/** https://sqlite.org/rescode.html#busy */
const SQLITE_BUSY = 5;

/**
 * Makes sure that one service at a time has this store: two would each take the other's commits for its own.
 *
 * The lock is an exclusive transaction on a small file of its own beside the database, which leaves the database
 * itself open to readers and to the command line. The system lets go of it however the process ends.
 *
 * @param path of the database file; it and its folder are made when they are not there
 * @returns lets go of the lock
 * @throws {StoreRejected} when another service has it, or the folder cannot be written to
 */
export function takeServeLock(path: string): () => void {
  return explainFailure(path, () => {
    makeFolder(dirname(resolve(path)));
    // Made first, so that it has one real name, whichever links lead to it.
    makeFile(path);
    const lockPath = `${realpathSync(path)}-serve-lock`;
    // Whoever may read it could take a shared lock on it, and keep the service from starting.
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
 * Whether a service could have this store now; makes nothing.
 *
 * @throws {StoreRejected} when another one has it
 */
export function checkServeLock(path: string): void {
  if (existsSync(path) && existsSync(`${realpathSync(path)}-serve-lock`)) takeServeLock(path)();
}
