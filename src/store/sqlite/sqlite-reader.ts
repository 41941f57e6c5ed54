import { statSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import type { PlantReader, PlantRevision } from '../plant-store.ts';
import { REVISION_COLUMNS, revisionOf } from '../rows.ts';
import { openForReading, unavailable } from './database.ts';
import { allTokens } from './token-table.ts';

const SELECT = `SELECT ${REVISION_COLUMNS} FROM plant_revision`;

export function openSqliteReader(path: string): PlantReader {
  const database = openForReading(path);
  return {
    revisionsOf: async id => [...select(database, `${SELECT} WHERE id = ? ORDER BY revision`, id)],
    async *revisions() {
      // `yield*` would await each revision once more.
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
    [Symbol.asyncDispose]: async () => database[Symbol.dispose](),
  };
}

function* select(database: DatabaseSync, sql: string, ...parameters: bigint[]): Iterable<PlantRevision> {
  try {
    const statement = database.prepare(sql);
    // Otherwise an id beyond 2^53 throws.
    statement.setReadBigInts(true);
    // Arrays are twice as fast as objects.
    statement.setReturnArrays(true);
    const rows: Iterable<unknown> = statement.iterate(...parameters);
    for (const row of rows) yield revisionOf(row as (string | bigint | null)[]);
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
