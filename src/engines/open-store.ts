import type { RepeatedIdRule } from '../core/commit/plant-commits.ts';
import { StoreMissing } from '../core/commit/store-errors.ts';
import type { CopyTarget } from './copy-target.ts';
import type { DatabaseAddress } from './database-url.ts';
import type { PlantReader } from './plant-reader.ts';
import type { PlantSearch } from './plant-search.ts';
import { START_TIMEOUT_MS } from './postgres/postgres-url.ts';
import { openSqliteReader } from './sqlite/commands/sqlite-reader.ts';
import { openSqliteSearch } from './sqlite/commands/sqlite-search.ts';
import { runningService, takeServeLock, wasServed } from './sqlite/files/serve-lock.ts';
import type { StorageEngine } from './storage-engine.ts';

// Each engine is imported on use: a service on SQLite starts faster without the PostgreSQL driver.

export interface StoreSettings {
  database: DatabaseAddress;
  repeatedIdRule: RepeatedIdRule;
  /** How many connections carry plants into PostgreSQL. */
  connections: number;
}

export type ServedStore = StorageEngine &
  AsyncDisposable & {
    /** Whether the last service, or `copy` into the store, was killed. Unknown on PostgreSQL. */
    isAfterCrash: boolean;
  };

/**
 * Opens a store for a service, or creates it. On SQLite it also takes the lock by which at most one
 * service uses the store. The disposal of the store releases this lock.
 *
 * @param onWait is called with a log message if the first connection to PostgreSQL takes longer
 *   than 1.5 s
 * @throws {StoreRejected}
 */
export async function openServedStore(
  settings: StoreSettings,
  onWait: (message: string) => void = () => {},
): Promise<ServedStore> {
  const { database, repeatedIdRule, connections } = settings;
  if (database.engine === 'postgres') {
    const { PostgresEngine } = await import('./postgres/postgres-engine.ts');
    const engine = await PostgresEngine.open(
      { address: database.address, repeatedIdRule, connections },
      { timeoutMs: START_TIMEOUT_MS, onWait },
    );
    return Object.assign(engine, {
      isAfterCrash: false,
      [Symbol.asyncDispose]: () => engine.close(),
    });
  }
  // The lock comes first: a second service must not update the schema while the first one runs.
  await using parts = new AsyncDisposableStack();
  const { file: lockFile, isAfterCrash } = parts.use(takeServeLock(database.path));
  const { SqliteEngine } = await import('./sqlite/sqlite-engine.ts');
  const engine = await SqliteEngine.open({ path: database.path, repeatedIdRule, lockFile });
  parts.defer(() => engine.close());
  const opened = parts.move();
  return Object.assign(engine, {
    isAfterCrash,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  });
}

/** Opens a store for a command that writes, beside a running service. @throws {StoreRejected} */
export async function openCommandStore(database: DatabaseAddress): Promise<StorageEngine> {
  if (database.engine === 'postgres') {
    const { PostgresEngine } = await import('./postgres/postgres-engine.ts');
    return PostgresEngine.open({ address: database.address, repeatedIdRule: 'revise', connections: 1 });
  }
  const { path } = database;
  // The reader rejects an outdated schema, because only the service may change the schema of an
  // existing store. A missing store is created, even if a service creates it at the same time.
  try {
    await openSqliteReader(path)[Symbol.asyncDispose]();
  } catch (error) {
    if (!(error instanceof StoreMissing)) throw error;
  }
  const { SqliteEngine } = await import('./sqlite/sqlite-engine.ts');
  return SqliteEngine.open({ path, repeatedIdRule: 'revise', lockFile: undefined });
}

/** Changes an existing store. It creates none, since its path may be mistyped or outdated. */
export async function inExistingStore<T>(
  database: DatabaseAddress,
  change: (store: StorageEngine) => Promise<T>,
): Promise<T> {
  await (await openReader(database))[Symbol.asyncDispose]();
  const store = await openCommandStore(database);
  return await change(store).finally(() => store.close());
}

/** Opens an existing store for reading. @throws {StoreMissing} @throws {StoreRejected} */
export async function openReader(database: DatabaseAddress): Promise<PlantReader> {
  if (database.engine === 'sqlite') return openSqliteReader(database.path);
  const { openPostgresReader } = await import('./postgres/postgres-reader.ts');
  return openPostgresReader(database.address);
}

/**
 * Opens the store of a service for searches beside its creates, on SQLite with a thread of its own.
 * The thread and the connections start with the first search, so a missing store fails only then.
 */
export async function openSearch(database: DatabaseAddress): Promise<PlantSearch> {
  if (database.engine === 'sqlite') return openSqliteSearch(database.path);
  const { openPostgresSearch } = await import('./postgres/postgres-search.ts');
  return openPostgresSearch(database.address);
}

export async function openCopyTarget(database: DatabaseAddress): Promise<CopyTarget> {
  if (database.engine === 'postgres') {
    const { openPostgresTarget } = await import('./postgres/postgres-target.ts');
    return openPostgresTarget(database.address);
  }
  const { openSqliteTarget } = await import('./sqlite/commands/sqlite-target.ts');
  return openSqliteTarget(database.path);
}

/** Names the service that uses a store. PostgreSQL cannot tell services from other clients. */
export function serviceOf(database: DatabaseAddress): string | undefined {
  return database.engine === 'sqlite' ? runningService(database.path) : undefined;
}

/** Rejects a store that a service uses. Creates nothing. @throws {StoreRejected} */
export async function rejectServed(database: DatabaseAddress): Promise<void> {
  if (database.engine !== 'sqlite' || !wasServed(database.path)) return;
  takeServeLock(database.path)[Symbol.dispose]();
}
