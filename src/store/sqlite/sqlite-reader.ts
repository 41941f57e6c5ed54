import { statSync } from 'node:fs';
import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import { ID_MIN } from '../../contract/limits.ts';
import { type Query, revisionsOf, searchPage } from '../plant-search.ts';
import type { PlantReader, PlantRevision, StoreSize } from '../plant-store.ts';
import { REVISION_COLUMNS, type Row, revisionOf } from '../rows.ts';
import { openForReading, unavailable } from './database.ts';
import { allTokens } from './token-table.ts';

const SELECT = `SELECT ${REVISION_COLUMNS} FROM plant_revision`;
/** Size of the database file. */
export const BYTES = 'SELECT page_count * page_size FROM pragma_page_count, pragma_page_size';
/** Each plant has one revision 1. */
const SIZE = `SELECT count(*) FILTER (WHERE revision = 1) AS plants, count(*) AS revisions, (${BYTES}) AS bytes
  FROM plant_revision`;

export function openSqliteReader(path: string): PlantReader {
  const database = openForReading(path);
  const query: Query = async (text, values) => read(() => queryRows(database, text, values));
  return {
    page: (...args) => searchPage(query, ...args),
    revisionsOf: (...args) => revisionsOf(query, ...args),
    async *revisions(from = ID_MIN) {
      // `yield*` would await each revision once more.
      for (const each of select(database, `${SELECT} WHERE id >= ? ORDER BY id, revision`, from)) yield each;
    },
    size: async () => read(() => database.prepare(SIZE).get() as StoreSize),
    tokens: async () => read(() => allTokens(database)),
    identity: async () => {
      const { dev, ino } = statSync(path, { bigint: true });
      return `file ${dev}:${ino}`;
    },
    [Symbol.asyncDispose]: async () => database[Symbol.dispose](),
  };
}

/** @param text may use the parameters `$1`, `$2` and so on, as in PostgreSQL */
export function queryRows(database: DatabaseSync, text: string, values: unknown[]): Row[] {
  const statement = database.prepare(text.replaceAll('$', '?'));
  // Otherwise an id beyond 2^53 throws.
  statement.setReadBigInts(true);
  statement.setReturnArrays(true);
  return statement.all(...(values as SQLInputValue[])) as unknown as Row[];
}

function* select(database: DatabaseSync, sql: string, ...parameters: bigint[]): Iterable<PlantRevision> {
  try {
    const statement = database.prepare(sql);
    // Otherwise an id beyond 2^53 throws.
    statement.setReadBigInts(true);
    // Arrays are twice as fast as objects.
    statement.setReturnArrays(true);
    const rows: Iterable<unknown> = statement.iterate(...parameters);
    for (const row of rows) yield revisionOf(row as Row);
  } catch (error) {
    throw unavailable(error);
  }
}

function read<T>(query: () => T): T {
  try {
    return query();
  } catch (error) {
    throw unavailable(error);
  }
}
