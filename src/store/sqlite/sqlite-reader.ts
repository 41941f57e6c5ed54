import { statSync } from 'node:fs';
import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import { type Query, revisionsOf, searchPage } from '../plant-search.ts';
import { type PlantReader, type PlantRevision, StoreDamaged, type StoreSize } from '../plant-store.ts';
import { REVISION_COLUMNS, type Row, revisionOf } from '../rows.ts';
import { openForReading, unavailable } from './database.ts';
import { readAhead } from './read-ahead.ts';
import { allTokens } from './token-table.ts';

const SELECT = `SELECT ${REVISION_COLUMNS} FROM plant_revision`;
/** Size of the database file. */
export const BYTES = 'SELECT page_count * page_size FROM pragma_page_count, pragma_page_size';
/** Each plant has one revision 1. */
const SIZE = `SELECT count(*) FILTER (WHERE revision = 1) AS plants, count(*) AS revisions, (${BYTES}) AS bytes
  FROM plant_revision`;

/** @param isImmutable see {@link openForReading} */
export function openSqliteReader(path: string, isImmutable = false): PlantReader {
  const database = openForReading(path, isImmutable);
  const query: Query = async (text, values) => read(() => queryRows(database, text, values));
  return {
    page: (...args) => searchPage(query, ...args),
    revisionsOf: (...args) => revisionsOf(query, ...args),
    revisions: from => revisionsFrom(database, from),
    revisionBatches: () => readAhead(path, isImmutable),
    size: async () => read(() => database.prepare(SIZE).get() as StoreSize),
    tokens: async () => read(() => allTokens(database)),
    newestTime: async () =>
      read(() =>
        Number(
          database.prepare('SELECT CAST(max(recorded_at) AS REAL) AS newest FROM plant_revision').get()
            ?.newest,
        ),
      ),
    structureFaults: async () => structureFaults(database),
    identity: async () => {
      const { dev, ino } = statSync(path, { bigint: true });
      return `file ${dev}:${ino}`;
    },
    [Symbol.asyncDispose]: async () => database[Symbol.dispose](),
  };
}

/** https://sqlite.org/pragma.html#pragma_integrity_check, which reports the first 100 faults */
export function structureFaults(database: DatabaseSync): string[] {
  const faults: string[] = [];
  try {
    for (const row of database.prepare('PRAGMA integrity_check').iterate()) {
      faults.push(...String(row.integrity_check).split('\n'));
    }
  } catch (error) {
    // The check itself ends at some faults.
    const failure = unavailable(error);
    if (!(failure instanceof StoreDamaged)) throw failure;
    faults.push(failure.message);
  }
  return faults.filter(fault => fault !== 'ok' && fault !== '*** in database main ***');
}

/** @param text may use the parameters `$1`, `$2` and so on, as in PostgreSQL */
export function queryRows(database: DatabaseSync, text: string, values: unknown[]): Row[] {
  const statement = database.prepare(text.replaceAll('$', '?'));
  // Otherwise an id beyond 2^53 throws.
  statement.setReadBigInts(true);
  statement.setReturnArrays(true);
  return statement.all(...(values as SQLInputValue[])) as unknown as Row[];
}

async function* revisionsFrom(database: DatabaseSync, from?: bigint): AsyncIterable<PlantRevision> {
  try {
    for (const revision of revisionsIn(database, from)) yield revision;
  } catch (error) {
    throw unavailable(error);
  }
}

/** One statement, so one snapshot. */
export function* revisionsIn(database: DatabaseSync, from?: bigint): Generator<PlantRevision> {
  // Without a condition, since a damaged key may misdirect the search for the smallest id.
  const where = from === undefined ? '' : 'WHERE id >= ?';
  const statement = database.prepare(`${SELECT} ${where} ORDER BY id, revision`);
  // Otherwise an id beyond 2^53 throws.
  statement.setReadBigInts(true);
  // Arrays are twice as fast as objects.
  statement.setReturnArrays(true);
  const rows: Iterable<unknown> = statement.iterate(...(from === undefined ? [] : [from]));
  for (const row of rows) yield revisionOf(row as Row);
}

function read<T>(query: () => T): T {
  try {
    return query();
  } catch (error) {
    throw unavailable(error);
  }
}
