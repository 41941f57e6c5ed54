import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, readFileSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { StoreMissing, StoreRejected, StoreUnavailable } from '../plant-store.ts';
import { LOCK_TIMEOUT_MS, PAGE_CACHE_KIB } from './limits.ts';

/** Marks the file as a plant store, so that no other SQLite database is taken for one. "PLNT" as four bytes. */
const APPLICATION_ID = 0x504c4e54;
/** https://sqlite.org/rescode.html#notadb */
const SQLITE_NOTADB = 26;
/** `PRAGMA synchronous` reads back as a number; 2 is FULL. https://sqlite.org/pragma.html#pragma_synchronous */
const SYNCHRONOUS_FULL = 2;

/** The changes of the schema from step 1 on, each made once in every store and never edited after its release. */
const STEPS = [readFileSync(new URL('./schema/001-plants-and-tokens.sql', import.meta.url), 'utf8')];
const NEWEST_STEP = STEPS.length;

/**
 * Opens a plant store for writing, makes it when there is none, and brings its schema up to date.
 *
 * Each commit is flushed before it returns: write-ahead log with `synchronous=FULL`. Both are read back, because SQLite
 * answers a rejected setting with the old one and not with an error (https://sqlite.org/wal.html).
 *
 * @param path of the database file
 * @throws {StoreRejected} when the file is something else, or newer than this program, or cannot be opened
 */
export function openForWriting(path: string): DatabaseSync {
  return explainFailure(path, () => {
    makeFolder(dirname(resolve(path)));
    rejectHardLinks(path);
    makeFile(path);
    return setUp(new DatabaseSync(path, { timeout: LOCK_TIMEOUT_MS }), database => {
      // Before anything is written: a file that is something else stays as it is.
      schemaVersion(database, path);
      makeDurable(database, path);
      applySchemaSteps(database, path);
    });
  });
}

/**
 * Opens an existing plant store for reading, beside a service that may be writing to it.
 *
 * @param isImmutable nothing writes to it: it is opened without a lock, and without the files that SQLite puts beside a
 *   database with a write-ahead log and that a reader leaves there
 * @throws {StoreMissing} when there is no plant store at this path
 * @throws {StoreRejected} when it cannot be opened as it stands
 */
export function openForReading(path: string, isImmutable = false): DatabaseSync {
  return explainFailure(path, () => {
    if (!existsSync(path)) throw missing(path);
    rejectHardLinks(path);
    const url = pathToFileURL(path);
    // https://sqlite.org/c3ref/open.html, "immutable"
    if (isImmutable) url.searchParams.set('immutable', '1');
    return setUp(new DatabaseSync(url, { readOnly: true, timeout: LOCK_TIMEOUT_MS }), database => {
      const version = schemaVersion(database, path);
      // Whoever made the file was killed before the schema was in.
      if (version === 0) throw missing(path);
      if (version !== NEWEST_STEP) {
        throw new StoreRejected(
          `${path} has schema step ${version} and this program expects ${NEWEST_STEP}; start the service once to bring it up to date`,
        );
      }
    });
  });
}

function setUp(database: DatabaseSync, steps: (database: DatabaseSync) => void): DatabaseSync {
  try {
    steps(database);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

function missing(path: string): StoreMissing {
  return new StoreMissing(
    `there is no plant store at ${path}; \`npx plant-store serve\` makes one, or name another with --database`,
  );
}

function makeDurable(database: DatabaseSync, path: string): void {
  const journalMode = database.prepare('PRAGMA journal_mode = WAL').get()?.journal_mode;
  // fullfsync makes macOS flush the cache of the drive too; elsewhere it changes nothing.
  database.exec(`PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA cache_size = -${PAGE_CACHE_KIB}`);
  const synchronous = database.prepare('PRAGMA synchronous').get()?.synchronous;
  if (journalMode !== 'wal' || synchronous !== SYNCHRONOUS_FULL) {
    throw new StoreRejected(
      `${path} cannot be written durably here: SQLite gave journal_mode=${journalMode}, ` +
        `synchronous=${synchronous} instead of wal and ${SYNCHRONOUS_FULL}; choose a local disk`,
    );
  }
}

/** Applies what is missing, all of it or nothing, so that two starts side by side do no harm. */
function applySchemaSteps(database: DatabaseSync, path: string): void {
  if (schemaVersion(database, path) === NEWEST_STEP) return;
  inTransaction(database, () => {
    for (const sql of STEPS.slice(schemaVersion(database, path))) database.exec(sql);
    database.exec(`PRAGMA user_version = ${NEWEST_STEP}; PRAGMA application_id = ${APPLICATION_ID}`);
  });
  // Into the database file itself, which is worth nothing without the schema should the log ever be lost.
  database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
}

/** Writes all of it or nothing. */
export function inTransaction(database: DatabaseSync, write: () => void): void {
  database.exec('BEGIN IMMEDIATE');
  try {
    write();
    database.exec('COMMIT');
  } catch (error) {
    // After some errors, a full disk among them, SQLite has rolled back by itself.
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  }
}

/**
 * SQLite names the write-ahead log after the file: under two names the same file has two logs, and the one written
 * last wins (https://sqlite.org/howtocorrupt.html, section 2.5).
 */
function rejectHardLinks(path: string): void {
  const stats = statSync(path, { throwIfNoEntry: false });
  // A folder has several by nature, and is rejected for what it is.
  const links = stats?.isFile() ? stats.nlink : 1;
  if (links > 1) {
    throw new StoreRejected(
      `${path} is one of ${links} names (hard links) of the same file; keep one of them`,
    );
  }
}

/** The number of the last schema step applied to the database; 0 for one that is new. */
function schemaVersion(database: DatabaseSync, path: string): number {
  // In this order: another process may be making the store, and all three change in one commit.
  // Litestream makes tables of its own as soon as there is a file, even before those of the store.
  const isEmpty =
    database
      .prepare(`SELECT count(*) AS tables FROM sqlite_schema WHERE tbl_name NOT GLOB '_litestream_*'`)
      .get()?.tables === 0;
  const application = database.prepare('PRAGMA application_id').get()?.application_id;
  const version = database.prepare('PRAGMA user_version').get()?.user_version as number;
  if (application !== APPLICATION_ID && !isEmpty) {
    throw new StoreRejected(
      `${path} is an SQLite database but not a plant store; name another file with --database`,
    );
  }
  if (version > NEWEST_STEP) {
    throw new StoreRejected(
      `${path} was written by a newer plant-store (schema step ${version}, this program knows ${NEWEST_STEP}); use that one`,
    );
  }
  return version;
}

/**
 * Makes a folder and those above it, and makes their names durable: a flush of the database does not reach the entry
 * of its folder. Not Node's own `recursive`, which never ends where a folder cannot be made, as in /proc.
 */
export function makeFolder(folder: string): void {
  if (existsSync(folder)) return;
  const parent = dirname(folder);
  makeFolder(parent);
  try {
    mkdirSync(folder);
  } catch (error) {
    // Another start may have made it meanwhile.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  flush(parent);
}

/** Brings a file, or the names in a folder, to the disk. */
export function flush(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Makes the file of a store for its owner alone, since plants and the hashes of tokens are in it; an existing one keeps
 * its mode. SQLite gives the log the mode of the file.
 *
 * One that is there is not opened: as a process closes a file, it loses all locks on it, also those of its other
 * connections (https://sqlite.org/howtocorrupt.html, section 2.2).
 */
export function makeFile(path: string): void {
  if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600));
}

/** Turns what Node and SQLite say of a file that cannot be opened into what a person can do. @throws {StoreRejected} */
export function explainFailure<T>(path: string, open: () => T): T {
  try {
    return open();
  } catch (error) {
    if (error instanceof StoreRejected) throw error;
    const { message, errcode } = error as Error & { errcode?: number };
    const advice =
      errcode === SQLITE_NOTADB
        ? 'it is no SQLite database; name another file with --database'
        : 'is the folder there and writable?';
    throw new StoreRejected(`the store at ${path} cannot be opened (${message}); ${advice}`, {
      cause: error,
    });
  }
}

/** What SQLite says of an open store, such as that the disk is full. A refusal stays what it is. */
export function unavailable(error: unknown): StoreUnavailable | StoreRejected {
  if (error instanceof StoreRejected) return error;
  const { message, errcode } = error as Error & { errcode?: number };
  const code = errcode === undefined ? '' : ` (SQLite result code ${errcode})`;
  return new StoreUnavailable(`${message}${code}`, { cause: error });
}
