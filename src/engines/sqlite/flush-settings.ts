import type { DatabaseSync } from 'node:sqlite';
import { StoreRejected } from '../../core/commit/store-errors.ts';

/** The number of FULL in https://sqlite.org/pragma.html#pragma_synchronous */
const SYNCHRONOUS_FULL = 2;

/**
 * Makes a connection flush what it writes: a commit into the write-ahead log, or a checkpoint into
 * the database file.
 *
 * @throws {StoreRejected}
 */
export function flushAllWrites(database: DatabaseSync, path: string): void {
  // On macOS, fullfsync also flushes the cache of the drive. Other systems ignore it.
  database.exec('PRAGMA synchronous = FULL; PRAGMA fullfsync = ON');
  // It is read back, because SQLite reports no error when it does not apply a setting.
  const synchronous = database.prepare('PRAGMA synchronous').get()?.synchronous;
  if (synchronous !== SYNCHRONOUS_FULL)
    throw notDurable(path, `synchronous=${synchronous} instead of ${SYNCHRONOUS_FULL}`);
}

/** @param given a setting that SQLite did not apply */
export function notDurable(path: string, given: string): StoreRejected {
  const fault = `${path} cannot be written durably here: SQLite gave ${given}`;
  return new StoreRejected(fault, { advice: 'choose a local disk' });
}
