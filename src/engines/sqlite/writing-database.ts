import { DatabaseSync } from 'node:sqlite';
import { StoreRejected } from '../../core/commit/store-errors.ts';
import type { SchemaSteps } from '../storage-engine.ts';
import { rejectSchema } from '../store-rejections.ts';
import { LOCK_TIMEOUT_MS, prepareStoreFile } from './files/store-files.ts';
import { applySchemaSteps, schemaFaults, schemaVersion } from './schema.ts';
import { orRejected } from './sqlite-errors.ts';

/**
 * With random ids a larger cache is slower. Nearly every batch splits a page, and the commit then
 * searches the whole cache (balance_nonroot in btree.c, pcache1Truncate in pcache1.c).
 */
const PAGE_CACHE_KIB = 8 * 1024;
/** The number of FULL in https://sqlite.org/pragma.html#pragma_synchronous */
const SYNCHRONOUS_FULL = 2;

export interface WritingDatabase {
  database: DatabaseSync;
  schemaSteps: SchemaSteps;
}

/** Opens a store for writing, or creates it, and updates its schema. @throws {StoreRejected} */
export function openForWriting(path: string): WritingDatabase {
  return orRejected(path, () => {
    prepareStoreFile(path);
    using opened = new DisposableStack();
    const database = opened.use(new DatabaseSync(path, { timeout: LOCK_TIMEOUT_MS }));
    // The check comes before the first write, so a file of another program does not change.
    schemaVersion(database, path);
    makeDurable(database, path);
    const schemaSteps = applySchemaSteps(database, path);
    rejectSchema(schemaFaults(database));
    opened.move();
    return { database, schemaSteps };
  });
}

/** Reads both settings back: SQLite reports no error when it does not apply a setting. */
function makeDurable(database: DatabaseSync, path: string): void {
  const journalMode = database.prepare('PRAGMA journal_mode = WAL').get()?.journal_mode;
  // On macOS, fullfsync also flushes the cache of the drive. Other systems ignore it.
  database.exec(`PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA cache_size = -${PAGE_CACHE_KIB}`);
  const synchronous = database.prepare('PRAGMA synchronous').get()?.synchronous;
  if (journalMode !== 'wal' || synchronous !== SYNCHRONOUS_FULL) {
    throw new StoreRejected(
      `${path} cannot be written durably here: SQLite gave journal_mode=${journalMode}, ` +
        `synchronous=${synchronous} instead of wal and ${SYNCHRONOUS_FULL}`,
      { advice: 'choose a local disk' },
    );
  }
}
