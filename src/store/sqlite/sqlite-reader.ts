import { statSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import type { PlantReader, PlantRevision } from '../plant-store.ts';
import { openForReading, unavailable } from './database.ts';
import { allTokens } from './token-table.ts';

const SELECT = 'SELECT id, revision, name, tag, recorded_at, recorded_by FROM plant_revision';

/** As the columns are above. */
type Row = [
  id: bigint,
  revision: bigint,
  name: string,
  tag: string | null,
  recordedAt: bigint,
  recordedBy: bigint,
];

/**
 * Opens a SQLite store for reading.
 *
 * @throws {StoreMissing} when there is no plant store at this path
 * @throws {StoreRefused} when it cannot be opened as it stands
 */
export function openSqliteReader(path: string): PlantReader {
  const database = openForReading(path);
  return {
    revisionsOf: async id => [...select(database, `${SELECT} WHERE id = ? ORDER BY revision`, id)],
    async *revisions() {
      // Not `yield*`, which waits once more for each of them.
      for (const revision of select(database, `${SELECT} ORDER BY id, revision`)) yield revision;
    },
    countRevisions: async () =>
      read(() => {
        const sql = 'SELECT count(*) AS revisions FROM plant_revision';
        return database.prepare(sql).get()!.revisions as number;
      }),
    tokens: async () => read(() => allTokens(database)),
    identity: async () => {
      const { dev, ino } = statSync(path, { bigint: true });
      return `file ${dev}:${ino}`;
    },
    close: async () => database.close(),
  };
}

function* select(database: DatabaseSync, sql: string, ...parameters: bigint[]): Iterable<PlantRevision> {
  try {
    const statement = database.prepare(sql);
    // Without this an id beyond 2^53 throws.
    statement.setReadBigInts(true);
    // Twice as fast as objects.
    statement.setReturnArrays(true);
    for (const row of statement.iterate(...parameters) as Iterable<unknown>) {
      const [id, revision, name, tag, recordedAt, recordedBy] = row as Row;
      yield {
        plant: tag === null ? { id, name } : { id, name, tag },
        revision: Number(revision),
        recordedAt: Number(recordedAt),
        recordedBy: Number(recordedBy),
      };
    }
  } catch (error) {
    throw unavailable(error);
  }
}

function read<T>(question: () => T): T {
  try {
    return question();
  } catch (error) {
    throw unavailable(error);
  }
}
