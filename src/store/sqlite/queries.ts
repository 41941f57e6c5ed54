/** Queries of the readers, also on threads. The program of a thread must not start this thread. */
import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import type { PlantRevision } from '../plant-store.ts';
import { REVISION_COLUMNS, type Row, revisionOf } from '../rows.ts';

/** @param text may use the parameters `$1`, `$2` and so on, as in PostgreSQL */
export function queryRows(database: DatabaseSync, text: string, values: unknown[]): Row[] {
  const statement = database.prepare(text.replaceAll('$', '?'));
  // Otherwise an id beyond 2^53 throws.
  statement.setReadBigInts(true);
  statement.setReturnArrays(true);
  return statement.all(...(values as SQLInputValue[])) as unknown as Row[];
}

/** One statement, so one snapshot. */
export function* revisionsIn(database: DatabaseSync, from?: bigint): Generator<PlantRevision> {
  // Without a condition, since a damaged key may misdirect the search for the smallest id.
  const where = from === undefined ? '' : 'WHERE id >= ?';
  const statement = database.prepare(
    `SELECT ${REVISION_COLUMNS} FROM plant_revision ${where} ORDER BY id, revision`,
  );
  // Otherwise an id beyond 2^53 throws.
  statement.setReadBigInts(true);
  // Arrays are twice as fast as objects.
  statement.setReturnArrays(true);
  const rows: Iterable<unknown> = statement.iterate(...(from === undefined ? [] : [from]));
  for (const row of rows) yield revisionOf(row as Row);
}
