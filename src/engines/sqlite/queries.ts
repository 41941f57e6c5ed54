import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import { REVISION_COLUMNS } from '../tables/revision-rows.ts';
import type { Row } from '../tables/table-access.ts';

/** SQLite throws for an id beyond 2^53 as a number. Arrays are twice as fast as objects. */
export const AS_ROWS = { readBigInts: true, returnArrays: true };

/** Selects the latest revision of the plant with an id. */
export function latestRevisionOf(database: DatabaseSync): StatementSync {
  return database.prepare(
    `SELECT ${REVISION_COLUMNS} FROM plant_revision WHERE id = ? ORDER BY revision DESC LIMIT 1`,
    AS_ROWS,
  );
}

/** @param text may use the parameters `$1`, `$2` and so on, as in PostgreSQL */
export function queryRows(database: DatabaseSync, text: string, values: unknown[] = []): Row[] {
  const statement = database.prepare(text.replace(/\$(?=\d)/g, '?'), AS_ROWS);
  return statement.all(...(values as SQLInputValue[])) as unknown as Row[];
}

export function inTransaction(database: DatabaseSync, write: () => void): void {
  database.exec('BEGIN IMMEDIATE');
  try {
    write();
    database.exec('COMMIT');
  } catch (error) {
    // After some errors, such as a full disk, SQLite has already rolled back.
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  }
}
