import { type BackupProgressInfo, backup, type DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { StoreRejected } from '../plant-store.ts';
import { openForReading } from './database.ts';
import { BACKUP_STEP_PAGES } from './limits.ts';

/** What a store holds, counted. */
export interface StoreCounts {
  plants: number;
  revisions: number;
  tokens: number;
}

/**
 * Copies a store as it is at one moment, beside a service that may be writing to it: a plant that was answered 200
 * before the call is in the copy.
 *
 * One read transaction holds that moment from the first page to the last. Without it SQLite begins again whenever
 * another connection commits between two steps (https://sqlite.org/backup.html), which never ends under load. Until the
 * transaction ends, the write-ahead log is not restarted and grows by what is written meanwhile.
 *
 * @param path of the store
 * @param to an empty file, which becomes the copy
 * @param onStep is told after each step how many pages there are, and how many are left
 * @returns what the store held at that moment
 * @throws {StoreRejected} when there is no store, or it cannot be opened
 * @throws whatever SQLite throws, such as that the disk is full
 */
export async function copySnapshot(
  path: string,
  to: string,
  onStep: (progress: BackupProgressInfo) => void,
): Promise<StoreCounts> {
  using database = openForReading(path);
  database.exec('BEGIN');
  // BEGIN alone takes no snapshot: the first thing that is read does, https://sqlite.org/lang_transaction.html
  const counts = countRows(database);
  await backup(database, pathToFileURL(to), { rate: BACKUP_STEP_PAGES, progress: onStep });
  return counts;
}

/**
 * Goes through every page of a copy that nothing has open (`PRAGMA integrity_check`), and counts what it holds.
 *
 * @throws {StoreRejected} when the copy is not a sound plant store with the schema of this program
 */
export function checkCopy(path: string): StoreCounts {
  using database = openForReading(path, true);
  const [first] = database.prepare('PRAGMA integrity_check(1)').all();
  if (first?.integrity_check !== 'ok') {
    throw new StoreRejected(
      `the copy is damaged (${first?.integrity_check}); run it again, and look for faults of the disk and of the store when it comes again`,
    );
  }
  return countRows(database);
}

function countRows(database: DatabaseSync): StoreCounts {
  // Each plant has one revision 1.
  const sql = `SELECT count(*) FILTER (WHERE revision = 1) AS plants, count(*) AS revisions,
    (SELECT count(*) FROM token) AS tokens FROM plant_revision`;
  return { ...database.prepare(sql).get() } as unknown as StoreCounts;
}
