import type { DatabaseSync } from 'node:sqlite';
import type { PlantReader, PlantRevision } from '../plant-store.ts';
import { openForReading } from './database.ts';

// A plant that was copied in from elsewhere may come from a token that is not here.
const REVISION = `
  SELECT plant_revision.id, revision, name, tag, recorded_at AS recordedAt,
    coalesce(token.label, recorded_by) AS recordedBy
  FROM plant_revision LEFT JOIN token ON token.id = recorded_by`;
const IN_ORDER = 'ORDER BY plant_revision.id, revision';
// The next entry of the primary key tells whether a revision is the last of its plant, without a search for the largest.
const IS_LATEST = `NOT EXISTS (
  SELECT 1 FROM plant_revision AS later WHERE later.id = plant_revision.id AND later.revision > plant_revision.revision)`;

interface Row {
  id: bigint;
  revision: bigint;
  name: string;
  tag: string | null;
  recordedAt: bigint;
  recordedBy: string;
}

/**
 * Opens a SQLite store for reading.
 *
 * @throws {StoreRefused} when there is no plant store at this path
 */
export function openSqliteReader(path: string): PlantReader {
  const database = openForReading(path);
  return {
    revisionsOf: id => [...select(database, `${REVISION} WHERE plant_revision.id = ? ${IN_ORDER}`, id)],
    plants: which =>
      select(database, `${REVISION} ${which === 'all' ? '' : `WHERE ${IS_LATEST}`} ${IN_ORDER}`),
    close: () => database.close(),
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
      recordedBy: String(recordedBy),
    };
  }
}
