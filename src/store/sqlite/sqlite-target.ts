import type { DatabaseSync } from 'node:sqlite';
import type { StoredToken } from '../../contract/stored-token.ts';
import { type CopyTarget, concurrentChange } from '../plant-store.ts';
import { PUT_TOKEN, putValues } from '../token-rows.ts';
import { inTransaction, openForWriting, unavailable } from './database.ts';
import { queryRows } from './queries.ts';
import { takeServeLock } from './serve-lock.ts';

/** https://sqlite.org/rescode.html#constraint_unique */
const SQLITE_CONSTRAINT_UNIQUE = 2067;

/** Opens the target of a copy and locks it for services. Writes block this thread. */
export async function openSqliteTarget(path: string): Promise<CopyTarget> {
  using parts = new DisposableStack();
  parts.use(await takeServeLock(path));
  const database = parts.use(openForWriting(path));
  const insert = database.prepare(
    'INSERT INTO plant_revision VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING',
  );
  const write = async (work: () => void): Promise<void> => {
    try {
      inTransaction(database, work);
    } catch (error) {
      throw unavailable(error);
    }
  };
  const opened = parts.move();
  return {
    insertRevisions: revisions =>
      write(() => {
        for (const { plant, revision, recordedAt, recordedBy, checksum } of revisions) {
          const { id, name, tag = null } = plant;
          const { changes } = insert.run(id, revision, name, tag, recordedAt, recordedBy, checksum);
          if (changes === 0) throw concurrentChange(`revision ${revision} of plant ${id}`);
        }
      }),
    putTokens: tokens =>
      write(() => {
        for (const token of tokens) {
          if (!putToken(database, token)) throw concurrentChange(`token ${JSON.stringify(token.label)}`);
        }
      }),
    [Symbol.asyncDispose]: async () => opened.dispose(),
  };
}

/** @returns false when another token has its id, hash or label, or when it is revoked only here */
function putToken(database: DatabaseSync, token: StoredToken): boolean {
  try {
    return queryRows(database, PUT_TOKEN, putValues(token)).length === 1;
  } catch (error) {
    if ((error as { errcode?: number }).errcode === SQLITE_CONSTRAINT_UNIQUE) return false;
    throw error;
  }
}
