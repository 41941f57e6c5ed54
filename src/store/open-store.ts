import { existsSync } from 'node:fs';
import { sqlitePathOf } from './database-url.ts';
import type { PlantReader, RepeatedIdRule, StorageEngine } from './plant-store.ts';
import { takeServeLock } from './sqlite/serve-lock.ts';
import { SqliteEngine } from './sqlite/sqlite-engine.ts';
import { openSqliteReader } from './sqlite/sqlite-reader.ts';

/** A store that a service has to itself, as far as its engine wants that. */
export interface ServedStore {
  engine: StorageEngine;
  /** Closes the store and lets the next service have it. */
  close(): Promise<void>;
}

/**
 * Opens a store for a service, and makes it when there is none.
 *
 * @param database as {@link sqlitePathOf} reads it
 * @throws {StoreRefused} when it cannot be opened, or another service has it
 */
export async function openServedStore(
  database: string,
  repeatedIdRule: RepeatedIdRule,
): Promise<ServedStore> {
  const path = sqlitePathOf(database);
  // Before the file is touched: a second service must not even bring the schema up to date under the first.
  const releaseLock = takeServeLock(path);
  try {
    const engine = await SqliteEngine.open({ path, repeatedIdRule });
    const close = async (): Promise<void> => {
      try {
        await engine.close();
      } finally {
        releaseLock();
      }
    };
    return { engine, close };
  } catch (error) {
    releaseLock();
    throw error;
  }
}

/** Opens a store to manage its tokens, beside a service that may be running on it. @throws {StoreRefused} */
export async function openTokenStore(database: string): Promise<StorageEngine> {
  const path = sqlitePathOf(database);
  // One that is there must be up to date: its schema is the service's to change, which may be running.
  if (existsSync(path)) openSqliteReader(path).close();
  return SqliteEngine.open({ path, repeatedIdRule: 'revise' });
}

/** Opens an existing store for reading, beside a service that may be running on it. @throws {StoreRefused} */
export function openReader(database: string): PlantReader {
  return openSqliteReader(sqlitePathOf(database));
}
