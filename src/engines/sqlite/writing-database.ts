import { DatabaseSync } from 'node:sqlite';
import type { SchemaSteps } from '../storage-engine.ts';
import { rejectSchema } from '../store-rejections.ts';
import { LOCK_TIMEOUT_MS, prepareStoreFile } from './files/store-files.ts';
import { flushAllWrites, notDurable } from './flush-settings.ts';
import { applySchemaSteps, schemaFaults, schemaVersion } from './schema.ts';
import { orRejected } from './sqlite-errors.ts';

/**
 * With random ids a larger cache is slower. Nearly every batch splits a page, and the commit then
 * searches the whole cache (balance_nonroot in btree.c, pcache1Truncate in pcache1.c).
 */
const PAGE_CACHE_KIB = 8 * 1024;

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
    const journalMode = database.prepare('PRAGMA journal_mode = WAL').get()?.journal_mode;
    if (journalMode !== 'wal') throw notDurable(path, `journal_mode=${journalMode} instead of wal`);
    flushAllWrites(database, path);
    database.exec(`PRAGMA cache_size = -${PAGE_CACHE_KIB}`);
    const schemaSteps = applySchemaSteps(database, path);
    rejectSchema(schemaFaults(database));
    opened.move();
    return { database, schemaSteps };
  });
}
