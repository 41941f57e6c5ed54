import { DatabaseSync } from 'node:sqlite';

/** Delays all commits of a service by an open write transaction, until it is disposed. */
export function holdStore(database: string): Disposable {
  const other = new DatabaseSync(database.replace('sqlite:', ''));
  other.exec('BEGIN IMMEDIATE');
  return { [Symbol.dispose]: () => other.isOpen && other.close() };
}
