import { type BackupProgressInfo, backup, DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { StoreRejected } from '../../../core/commit/store-errors.ts';
import { countRows } from '../../tables/revision-rows.ts';
import { numberOf, type Query } from '../../tables/table-access.ts';
import { queryRows } from '../queries.ts';
import { openForReading } from './reading-database.ts';
import { structureFaults } from './sqlite-reader.ts';

/** Pages that one step copies (4 MiB). Each step reports the progress. */
export const BACKUP_STEP_PAGES = 1_000;

export interface StoreCounts {
  plants: number;
  revisions: number;
  tokens: number;
}

/**
 * Copies one snapshot of a store. A service may write to it at the same time. The copy contains
 * every plant that was confirmed before the call.
 *
 * All pages are copied in one read transaction. Otherwise SQLite restarts the copy when another
 * connection commits between two steps (https://sqlite.org/backup.html), without end under load.
 * Until the transaction ends, the write-ahead log is not restarted, so it grows.
 *
 * @param to path of an empty file, which becomes the copy
 * @throws {StoreRejected} @throws any error of SQLite, such as a full disk
 */
export async function copySnapshot(
  path: string,
  to: string,
  onStep: (progress: BackupProgressInfo) => void,
): Promise<StoreCounts> {
  using opened = openForReading(path);
  const { database, rejectChange } = opened;
  database.exec('BEGIN');
  // The first read takes the snapshot, not BEGIN: https://sqlite.org/lang_transaction.html
  const counts = await countsIn(database);
  await backup(database, pathToFileURL(to), { rate: BACKUP_STEP_PAGES, progress: onStep });
  rejectChange();
  leaveWalMode(to);
  return counts;
}

/** Ends WAL mode in the copy, so that every SQLite can read the copy in a read-only folder. */
function leaveWalMode(path: string): void {
  using copy = new DatabaseSync(path);
  // In this locking mode there is no `-shm` file: https://sqlite.org/wal.html#noshm
  copy.exec('PRAGMA locking_mode = EXCLUSIVE');
  const journalMode = copy.prepare('PRAGMA journal_mode = DELETE').get()?.journal_mode;
  if (journalMode !== 'delete') throw new StoreRejected(`the copy has the journal mode ${journalMode}`);
}

/** A copy has faults. Its source probably has the same ones. */
export class CopyDamaged extends StoreRejected {
  override name = 'CopyDamaged';
}

/** Checks every page of a copy that no program has open. @throws {CopyDamaged} {StoreRejected} */
export async function checkCopy(path: string): Promise<StoreCounts> {
  using opened = openForReading(path);
  const [fault] = structureFaults(opened.database);
  if (fault !== undefined) {
    throw new CopyDamaged(`the copy is damaged (${fault})`, {
      advice: 'run the backup again; if it fails again, run `npx plant-store verify`',
    });
  }
  return await countsIn(opened.database);
}

async function countsIn(database: DatabaseSync): Promise<StoreCounts> {
  const query: Query = async (text, values) => queryRows(database, text, values);
  const [row] = await query('SELECT count(*) FROM token', []);
  return { ...(await countRows(query)), tokens: numberOf(row![0]) };
}
