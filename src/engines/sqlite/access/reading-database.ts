import * as fs from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { StoreRejected, StoreUnavailable } from '../../../core/commit/store-errors.ts';
import { missingStoreError, schemaStepError } from '../../store-rejections.ts';
import { LOCK_TIMEOUT_MS, rejectUnusableFile } from '../files/store-files.ts';
import { SCHEMA_STEPS, schemaVersion } from '../schema.ts';
import { isUnwritable, orRejected } from '../sqlite-errors.ts';

/** A connection that only reads. */
export class ReadingDatabase implements Disposable {
  readonly database: DatabaseSync;
  /** Called after each read, even a failed one. @throws {StoreUnavailable} if it may be wrong */
  readonly rejectChange: () => void;

  constructor(database: DatabaseSync, rejectChange: () => void) {
    this.database = database;
    this.rejectChange = rejectChange;
  }

  [Symbol.dispose](): void {
    this.database.close();
  }
}

/**
 * Opens an existing store for reading. A service may write to it at the same time.
 *
 * @throws {StoreMissing} @throws {StoreRejected}
 */
export function openForReading(path: string): ReadingDatabase {
  return orRejected(path, () => {
    if (!fs.existsSync(path)) throw missingStoreError(`at ${path}`);
    rejectUnusableFile(path);
    try {
      return new ReadingDatabase(openReadOnly(path), () => {});
    } catch (error) {
      if (!isUnwritable(error)) throw error;
      return openUnwritable(path, error);
    }
  });
}

/**
 * Opens a store in a folder that cannot be written. In WAL mode, SQLite creates two files for a
 * read, unless the database is opened as immutable (https://sqlite.org/c3ref/open.html). This
 * function rejects a store with a write-ahead log, because SQLite reads an immutable database
 * without it. `rejectChange` rejects a read during which a service started, because SQLite does not
 * notice that.
 */
function openUnwritable(path: string, cause: unknown): ReadingDatabase {
  const file = fs.realpathSync(path);
  const sizeOf = (suffix: string) => fs.statSync(`${file}${suffix}`, { throwIfNoEntry: false })?.size;
  const notRead = ['-wal', '-journal'].find(suffix => sizeOf(suffix));
  if (notRead !== undefined)
    throw new StoreRejected(
      `${path} cannot be read here: ${file}${notRead} belongs to it, and this user may not write beside it`,
      { advice: 'copy both files into a folder that you may write to, and read the copy', cause },
    );
  const isUsed = () => sizeOf('-shm') !== undefined || Boolean(sizeOf('-wal'));
  if (isUsed() || mayWrite(dirname(file))) throw cause;
  const stateOf = () => {
    const { ino, size, mtimeNs } = fs.statSync(file, { bigint: true });
    return `${ino} ${size} ${mtimeNs}`;
  };
  const before = stateOf();
  return new ReadingDatabase(openReadOnly(path, { immutable: '1' }), () => {
    if (isUsed() || stateOf() !== before) throw new StoreUnavailable(`${path} was changed while it was read`);
  });
}

function mayWrite(folder: string): boolean {
  try {
    fs.accessSync(folder, fs.constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

function openReadOnly(path: string, parameters?: Record<string, string>): DatabaseSync {
  const url = pathToFileURL(path);
  url.search = new URLSearchParams(parameters).toString();
  using opened = new DisposableStack();
  const database = opened.use(new DatabaseSync(url, { readOnly: true, timeout: LOCK_TIMEOUT_MS }));
  const version = schemaVersion(database, path);
  // The process that created the file was killed before it wrote the schema.
  if (version === 0) throw missingStoreError(`at ${path}`);
  if (version < SCHEMA_STEPS.length) throw schemaStepError(path, version, SCHEMA_STEPS.length);
  opened.move();
  return database;
}

/** Whether a store was opened for writing: a backup is in journal mode DELETE until then. */
export function wasOpenedForWriting(path: string): boolean {
  using opened = openForReading(path);
  return opened.database.prepare('PRAGMA journal_mode').get()?.journal_mode === 'wal';
}
