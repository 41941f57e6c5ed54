import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import type { Row } from '../revision-rows.ts';

/** SQLite throws for an id beyond 2^53 as a number. Arrays are twice as fast as objects. */
export const AS_ROWS = { readBigInts: true, returnArrays: true };

/** @param text may use the parameters `$1`, `$2` and so on, as in PostgreSQL */
export function queryRows(database: DatabaseSync, text: string, values: unknown[] = []): Row[] {
  const statement = database.prepare(text.replaceAll('$', '?'), AS_ROWS);
  return statement.all(...(values as SQLInputValue[])) as unknown as Row[];
}
