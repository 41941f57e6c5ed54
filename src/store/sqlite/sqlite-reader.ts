import type { DatabaseSync } from 'node:sqlite';
import type { PlantReader, PlantRevision } from '../plant-store.ts';
import { openForReading } from './database.ts';
import { allTokens } from './token-table.ts';

const COLUMNS = 'id, revision, name, tag, recorded_at AS recordedAt, recorded_by AS recordedBy';

interface Row {
  id: bigint;
  revision: bigint;
  name: string;
  tag: string | null;
  recordedAt: bigint;
  recordedBy: bigint;
}

/**
 * Opens a SQLite store for reading.
 *
 * @throws {StoreRefused} when there is no plant store at this path
 */
export function openSqliteReader(path: string): PlantReader {
  const database = openForReading(path);
  return {
    revisionsOf: async id => [
      ...select(database, `SELECT ${COLUMNS} FROM plant_revision WHERE id = ? ORDER BY revision`, id),
    ],
    async *revisions() {
      const sql = `SELECT ${COLUMNS} FROM plant_revision ORDER BY id, revision`;
      // Not `yield*`, which waits once more for each of them.
      for (const revision of select(database, sql)) yield revision;
    },
    tokens: async () => allTokens(database),
    close: async () => database.close(),
  };
}

function* select(database: DatabaseSync, sql: string, ...parameters: bigint[]): Iterable<PlantRevision> {
  const statement = database.prepare(sql);
  // Without this an id beyond 2^53 throws.
  statement.setReadBigInts(true);
  for (const row of statement.iterate(...parameters) as Iterable<unknown>) {
    const { id, revision, name, tag, recordedAt, recordedBy } = row as Row;
    yield {
      plant: tag === null ? { id, name } : { id, name, tag },
      revision: Number(revision),
      recordedAt: Number(recordedAt),
      recordedBy: Number(recordedBy),
    };
  }
}
