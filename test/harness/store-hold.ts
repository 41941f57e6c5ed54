import { DatabaseSync } from 'node:sqlite';

/** Keeps every commit of a service waiting, as another program with an open transaction would; for a short while. */
export function holdStore(database: string): Disposable {
  const other = new DatabaseSync(database.replace('sqlite:', ''));
  other.exec('BEGIN IMMEDIATE');
  return { [Symbol.dispose]: () => other.isOpen && other.close() };
}
