import type { DatabaseSync } from 'node:sqlite';
import { type CopyTarget, changedMeanwhile, StoreRefused } from '../plant-store.ts';
import { openForWriting, unavailable } from './database.ts';
import { takeServeLock } from './serve-lock.ts';
import { putToken } from './token-table.ts';

/**
 * Opens a SQLite store that becomes a copy, makes it when there is none, and keeps services away from it. It is written on
 * this thread: nobody else waits here.
 *
 * @throws {StoreRefused} when it cannot be opened as it stands, or a service is running on it
 */
export function openSqliteTarget(path: string): CopyTarget {
  const releaseLock = takeServeLock(path);
  let database: DatabaseSync;
  try {
    database = openForWriting(path);
  } catch (error) {
    releaseLock();
    throw error;
  }
  const insert = database.prepare(
    'INSERT INTO plant_revision VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING',
  );
  return {
    insertRevisions: async revisions =>
      inTransaction(database, () => {
        for (const { plant, revision, recordedAt, recordedBy } of revisions) {
          const { id, name, tag = null } = plant;
          const { changes } = insert.run(id, revision, name, tag, recordedAt, recordedBy);
          if (changes === 0) throw changedMeanwhile(`revision ${revision} of plant ${id}`);
        }
      }),
    putTokens: async tokens =>
      inTransaction(database, () => {
        for (const token of tokens) {
          if (!putToken(database, token)) throw changedMeanwhile(`token ${JSON.stringify(token.label)}`);
        }
      }),
    close: async () => {
      database.close();
      releaseLock();
    },
  };
}

function inTransaction(database: DatabaseSync, write: () => void): void {
  try {
    database.exec('BEGIN IMMEDIATE');
    write();
    database.exec('COMMIT');
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error instanceof StoreRefused ? error : unavailable(error);
  }
}
