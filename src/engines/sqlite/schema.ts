import { readFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { StoreRejected } from '../../core/commit/store-errors.ts';
import type { SchemaSteps } from '../storage-engine.ts';
import { DATABASE_OPTION, schemaFaultsOf, schemaStepError } from '../store-rejections.ts';
import { inTransaction, queryRows } from './queries.ts';

/** Marks an SQLite database as a plant store: the four bytes "PLST". */
export const APPLICATION_ID = 0x504c5354;

/**
 * The schema steps, of which the first one has the number 1. Each store applies a step once, so a
 * released step is never edited.
 */
export const SCHEMA_STEPS = [readFileSync(new URL('./schema/001-store.sql', import.meta.url), 'utf8')];

/** Applies all missing steps in one transaction, so two processes may start at the same time. */
export function applySchemaSteps(database: DatabaseSync, path: string): SchemaSteps {
  let before = schemaVersion(database, path);
  if (before === SCHEMA_STEPS.length) return { before, now: SCHEMA_STEPS.length };
  inTransaction(database, () => {
    before = schemaVersion(database, path);
    for (const sql of SCHEMA_STEPS.slice(before)) database.exec(sql);
    database.exec(`PRAGMA user_version = ${SCHEMA_STEPS.length}; PRAGMA application_id = ${APPLICATION_ID}`);
  });
  // If the write-ahead log were lost, a database file without the schema would be useless.
  database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  return { before, now: SCHEMA_STEPS.length };
}

/** The number of the last schema step that was applied; 0 for a new database. */
export function schemaVersion(database: DatabaseSync, path: string): number {
  // One statement reads all, because another process may commit a new store between two statements.
  // Litestream creates its own tables as soon as the file exists, even before the store does.
  const text = `SELECT application_id, user_version,
      EXISTS (SELECT 1 FROM sqlite_schema WHERE tbl_name NOT GLOB '_litestream_*'),
      EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'plant_revision')
    FROM pragma_application_id, pragma_user_version`;
  const [application, version, hasTables, hasPlants] = queryRows(database, text)[0]!.map(Number);
  if (application !== APPLICATION_ID && hasTables === 1) {
    throw new StoreRejected(`${path} is an SQLite database but not a plant store`, {
      advice:
        hasPlants === 1
          ? `if it was restored from an SQL dump, which lacks two numbers, run: sqlite3 '${path}' ` +
            `'PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${SCHEMA_STEPS.length}'`
          : `name another file with ${DATABASE_OPTION}`,
    });
  }
  if (version! > SCHEMA_STEPS.length) throw schemaStepError(path, version!, SCHEMA_STEPS.length);
  return version!;
}

/** Selects the names that the schema steps use: of tables in lower case, and of all items. */
const OWN_NAMES = `SELECT json_group_array(lower(tbl_name)), json_group_array(name) FROM sqlite_schema`;

/**
 * Selects what must not change. Other tables, and other indexes that are not unique, do no harm. The
 * parameters are those of {@link OWN_NAMES}.
 */
const SCHEMA_ITEMS = `SELECT type || ' ' || name, sql FROM sqlite_schema
  WHERE lower(tbl_name) IN (SELECT value FROM json_each($1)) AND sql IS NOT NULL
    AND (name IN (SELECT value FROM json_each($2)) OR sql NOT LIKE 'CREATE INDEX %')`;

/** @returns one text for each difference between the schema and that of the schema steps */
export function schemaFaults(database: DatabaseSync): string[] {
  using empty = new DatabaseSync(':memory:');
  empty.exec(SCHEMA_STEPS.join('\n'));
  const [ownNames] = queryRows(empty, OWN_NAMES);
  const [ours, found] = [empty, database].map(each => {
    const rows = queryRows(each, SCHEMA_ITEMS, ownNames) as [string, string][];
    return new Map(rows.map(([item, sql]) => [item, sql.replace(/\s+/g, ' ')]));
  });
  return schemaFaultsOf(ours!, found!);
}
