import { resolve } from 'node:path';
import { InvalidDatabaseUrl } from '../invalid-database-url.ts';
import {
  POSTGRES_SCHEME,
  type PostgresAddress,
  postgresAddressOf,
  shownPostgresAddress,
} from '../postgres/postgres-url.ts';

export type DatabaseAddress =
  | {
      engine: 'sqlite';
      /** Path of the database file, absolute or relative. */
      path: string;
      /** Whether a new store gets its folder. Otherwise a missing folder is an error in the path. */
      makesFolder: boolean;
    }
  | { engine: 'postgres'; address: PostgresAddress };

const SQLITE_SCHEME = 'sqlite:';

/**
 * @param text `sqlite:PATH` or `postgres://USER@HOST:PORT/DATABASE`
 * @throws {InvalidDatabaseUrl}
 */
export function databaseAddressOf(text: string): DatabaseAddress {
  if (POSTGRES_SCHEME.test(text)) return { engine: 'postgres', address: postgresAddressOf(text) };
  const path = text.startsWith(SQLITE_SCHEME) ? text.slice(SQLITE_SCHEME.length) : '';
  // In SQLite these paths mean a temporary database, a database in memory and a URI.
  if (path === '' || path.startsWith(':memory:') || path.startsWith('file:')) {
    throw new InvalidDatabaseUrl(
      'invalid database URL',
      'write sqlite:PATH, for example sqlite:./data/plant-store.db, or postgres://USER@HOST:PORT/DATABASE',
    );
  }
  if (path.startsWith('//') || path.includes('?') || path.trim() !== path) {
    throw new InvalidDatabaseUrl(
      'invalid database URL',
      'after sqlite: write only a path: no //, no ? and no blanks around it',
    );
  }
  return { engine: 'sqlite', path, makesFolder: false };
}

export function shownDatabase(database: DatabaseAddress): string {
  return database.engine === 'sqlite'
    ? `${SQLITE_SCHEME}${database.path}`
    : shownPostgresAddress(database.address);
}

/** Makes a path absolute, for readers who may not know the working directory of this process. */
export function absoluteAddress(database: DatabaseAddress): DatabaseAddress {
  return database.engine === 'sqlite' ? { ...database, path: resolve(database.path) } : database;
}

/** @returns the path of a file beside the SQLite file; undefined on PostgreSQL */
export function fileBeside(database: DatabaseAddress, suffix: string): string | undefined {
  return database.engine === 'sqlite' ? `${resolve(database.path)}${suffix}` : undefined;
}

/** The option of a command in a shell. @param shown the database, from {@link shownDatabase} */
export function databaseFlag(shown: string): string {
  return `--database '${shown.replaceAll("'", String.raw`'\''`)}'`;
}
