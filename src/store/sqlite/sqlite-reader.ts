import { statSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { type Query, revisionsOf, searchPage } from '../plant-search.ts';
import { type PlantReader, type PlantRevision, StoreDamaged, type StoreSize } from '../plant-store.ts';
import { openForReading, schemaFaults, unavailable } from './database.ts';
import { queryRows, revisionsIn } from './queries.ts';
import { allTokens } from './token-table.ts';

/** Size of the database file. */
export const BYTES = 'SELECT page_count * page_size FROM pragma_page_count, pragma_page_size';
/** Each plant has one revision 1. */
const SIZE = `SELECT count(*) FILTER (WHERE revision = 1) AS plants, count(*) AS revisions, (${BYTES}) AS bytes
  FROM plant_revision`;
const NEWEST_TIME =
  'SELECT CAST(max(recorded_at) AS REAL) AS newest FROM plant_revision WHERE recorded_at <= ?';

/** @param isImmutable see {@link openForReading} */
export function openSqliteReader(path: string, isImmutable = false): PlantReader {
  const database = openForReading(path, isImmutable);
  const query: Query = async (text, values) => read(() => queryRows(database, text, values));
  return {
    page: (...args) => searchPage(query, ...args),
    revisionsOf: (...args) => revisionsOf(query, ...args),
    revisions: from => revisionsFrom(database, from),
    size: async () => read(() => database.prepare(SIZE).get() as StoreSize),
    tokens: async () => read(() => allTokens(database)),
    newestTime: async until => read(() => Number(database.prepare(NEWEST_TIME).get(until)?.newest)),
    structureFaults: async () => [...read(() => schemaFaults(database)), ...structureFaults(database)],
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

async function* revisionsFrom(database: DatabaseSync, from?: bigint): AsyncIterable<PlantRevision> {
  try {
    for (const revision of revisionsIn(database, from)) yield revision;
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
