import { StoreRejected } from './plant-store.ts';
import {
  isPostgresUrl,
  type PostgresAddress,
  postgresAddressOf,
  shownPostgresAddress,
} from './postgres/postgres-url.ts';

export type DatabaseAddress =
  | { engine: 'sqlite' /** Of the database file, absolute or from the current folder. */; path: string }
  | { engine: 'postgres'; address: PostgresAddress };

const SQLITE_SCHEME = 'sqlite:';

/**
 * Reads the address of a store.
 *
 * @param text `sqlite:PATH` or `postgres://USER@HOST:PORT/DATABASE`
 * @throws {StoreRefused} when it names no store this program knows; the message repeats nothing of it, which may hold
 *   a password
 */
export function databaseAddressOf(text: string): DatabaseAddress {
  if (isPostgresUrl(text)) return { engine: 'postgres', address: postgresAddressOf(text) };
  const path = text.startsWith(SQLITE_SCHEME) ? text.slice(SQLITE_SCHEME.length) : '';
  // SQLite takes the first two for a temporary database and one in memory, which keep no plant, and the third for a URI.
  if (path === '' || path.startsWith(':memory:') || path.startsWith('file:')) {
    throw new StoreRejected(
      'the address names no store; write sqlite:PATH, for example sqlite:./data/plant-store.db, or postgres://USER@HOST:PORT/DATABASE',
    );
  }
  return { engine: 'sqlite', path };
}

/** The address for logs and messages: without a password. */
export function shownDatabase(text: string): string {
  const database = databaseAddressOf(text);
  return database.engine === 'sqlite' ? text : shownPostgresAddress(database.address);
}
