import { StoreRefused } from './plant-store.ts';

const SQLITE_SCHEME = 'sqlite:';

/** Which store is meant. */
export interface DatabaseUrl {
  engine: 'sqlite';
  /** Of the database file. */
  path: string;
}

/**
 * Reads the address of a store.
 *
 * @param text `sqlite:PATH`, the path absolute or from the current folder
 * @throws {StoreRefused} when it names no store this program knows
 */
export function parseDatabaseUrl(text: string): DatabaseUrl {
  const path = text.startsWith(SQLITE_SCHEME) ? text.slice(SQLITE_SCHEME.length) : '';
  // SQLite takes these two for a database in memory, or for a temporary one: neither keeps a plant.
  if (path === '' || path.startsWith(':memory:')) {
    throw new StoreRefused(
      `${JSON.stringify(text)} names no store; write sqlite:PATH, for example sqlite:./data/plant-store.db`,
    );
  }
  return { engine: 'sqlite', path };
}
