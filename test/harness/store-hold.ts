import { DatabaseSync } from 'node:sqlite';

/** Far longer than a commit takes on a busy machine. */
const LOCK_MAX_MS = 20_000;

/** Delays all commits of a service by an open write transaction, until it is disposed. */
export function holdStore(database: string): Disposable {
  const other = new DatabaseSync(database.replace('sqlite:', ''), { timeout: LOCK_MAX_MS });
  other.exec('BEGIN IMMEDIATE');
  return { [Symbol.dispose]: () => other.isOpen && other.close() };
}
