import { existsSync, realpathSync } from 'node:fs';
import { databaseAddressOf } from './database-url.ts';
import type { CopyTarget, PlantReader, RepeatedIdRule, StorageEngine } from './plant-store.ts';
import { checkServeLock, takeServeLock } from './sqlite/serve-lock.ts';
import { openSqliteReader } from './sqlite/sqlite-reader.ts';

// Each engine is imported when it is wanted: a service on SQLite starts sooner without the driver of PostgreSQL.

export interface StoreSettings {
  /** `sqlite:PATH` or `postgres://…`. */
  database: string;
  repeatedIdRule: RepeatedIdRule;
  /** How many connections carry plants into PostgreSQL. */
  connections: number;
}

/** A store that a service works on; of a SQLite store it is the only service. */
export interface ServedStore extends AsyncDisposable {
  engine: StorageEngine;
}

/**
 * Opens a store for a service, and makes it when there is none.
 *
 * @throws {StoreRefused} when it cannot be opened, or it is a SQLite store and another service has it
 */
export async function openServedStore(settings: StoreSettings): Promise<ServedStore> {
  const { repeatedIdRule, connections } = settings;
  const database = databaseAddressOf(settings.database);
  if (database.engine === 'postgres') {
    const { PostgresEngine } = await import('./postgres/postgres-engine.ts');
    const engine = await PostgresEngine.open({ address: database.address, repeatedIdRule, connections });
    return { engine, [Symbol.asyncDispose]: () => engine.close() };
  }
  // Before the file is touched: a second service must not even bring the schema up to date under the first.
  const releaseLock = takeServeLock(database.path);
  try {
    const { SqliteEngine } = await import('./sqlite/sqlite-engine.ts');
    // The log lies beside the file itself, not beside a link to it.
    const engine = await SqliteEngine.open({ path: realpathSync(database.path), repeatedIdRule });
    return { engine, [Symbol.asyncDispose]: () => engine.close().finally(releaseLock) };
  } catch (error) {
    releaseLock();
    throw error;
  }
}

/** Opens a store to manage its tokens, beside a service that may be running on it. @throws {StoreRefused} */
export async function openTokenStore(text: string): Promise<StorageEngine> {
  const database = databaseAddressOf(text);
  if (database.engine === 'postgres') {
    const { PostgresEngine } = await import('./postgres/postgres-engine.ts');
    return PostgresEngine.open({ address: database.address, repeatedIdRule: 'revise', connections: 1 });
  }
  const { path } = database;
  // The schema of an existing store is the service's to change, which may be running: it must be up to date.
  if (existsSync(path)) await openSqliteReader(path)[Symbol.asyncDispose]();
  const { SqliteEngine } = await import('./sqlite/sqlite-engine.ts');
  return SqliteEngine.open({ path, repeatedIdRule: 'revise' });
}

/**
 * Opens an existing store for reading, beside a service that may be running on it.
 *
 * @throws {StoreMissing} when there is none
 * @throws {StoreRefused}
 */
export async function openReader(text: string): Promise<PlantReader> {
  const database = databaseAddressOf(text);
  if (database.engine === 'sqlite') return openSqliteReader(database.path);
  const { openPostgresReader } = await import('./postgres/postgres-reader.ts');
  return openPostgresReader(database.address);
}

/**
 * Opens a store that becomes the copy of another one, and makes it when there is none. A SQLite store is kept from
 * services meanwhile.
 *
 * @throws {StoreRefused}
 */
export async function openCopyTarget(text: string): Promise<CopyTarget> {
  const database = databaseAddressOf(text);
  if (database.engine === 'postgres') {
    const { openPostgresTarget } = await import('./postgres/postgres-target.ts');
    return openPostgresTarget(database.address);
  }
  const { openSqliteTarget } = await import('./sqlite/sqlite-target.ts');
  return openSqliteTarget(database.path);
}

/** Makes sure that {@link openCopyTarget} would not find a service on the store; makes nothing. @throws {StoreRefused} */
export function checkNotServed(text: string): void {
  const database = databaseAddressOf(text);
  if (database.engine === 'sqlite') checkServeLock(database.path);
}
