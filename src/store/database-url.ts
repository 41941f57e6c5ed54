import { StoreRefused } from './plant-store.ts';

const SQLITE_SCHEME = 'sqlite:';

/**
 * Reads the address of a store.
 *
 * @param text `sqlite:PATH`, the path absolute or from the current folder
 * @returns the path of the database file
 * @throws {StoreRefused} when it names no store this program knows
 */
export function sqlitePathOf(text: string): string {
  const path = text.startsWith(SQLITE_SCHEME) ? text.slice(SQLITE_SCHEME.length) : '';
  // SQLite takes the first two for a temporary database and one in memory, which keep no plant, and the third for a URI.
  if (path === '' || path.startsWith(':memory:') || path.startsWith('file:')) {
    throw new StoreRefused(
      `${JSON.stringify(text)} names no store; write sqlite:PATH, for example sqlite:./data/plant-store.db`,
    );
  }
  return path;
}
