import type { StorageEngine } from '../storage-engine.ts';
import type { DatabaseAddress } from './database-url.ts';
import { PostgresOpener } from './postgres-opener.ts';
import { SqliteOpener } from './sqlite-opener.ts';
import type { StoreOpener } from './store-opener.ts';

/** Selects the engine of a store. It opens nothing. */
export function openerOf(database: DatabaseAddress): StoreOpener {
  switch (database.engine) {
    case 'sqlite':
      return new SqliteOpener(database.path, database.makesFolder);
    case 'postgres':
      return new PostgresOpener(database.address);
  }
}

/** Changes an existing store. It creates none, since its path may be mistyped or outdated. */
export async function inExistingStore<T>(
  database: DatabaseAddress,
  change: (engine: StorageEngine) => Promise<T>,
): Promise<T> {
  const engine = await openerOf(database).openForCommand('reject');
  return await change(engine).finally(() => engine.close());
}
