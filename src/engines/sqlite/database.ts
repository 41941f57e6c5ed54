import * as fs from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import {
  StoreDamaged,
  StoreInternalError,
  StoreRejected,
  StoreUnavailable,
} from '../../core/commit/store-errors.ts';
import { noStore, otherStep, rejectSchema, schemaFaultsOf } from '../schema-faults.ts';
import type { SchemaSteps } from '../storage-engine.ts';
import { DEFAULT_SANDBOX_PATH, DEFAULT_SQLITE_PATH } from './default-paths.ts';
import { queryRows } from './queries.ts';
import { SCHEMA_STEPS } from './schema-steps.ts';

/** Timeout for the lock of another process. The command line locks the store only briefly. */
const LOCK_TIMEOUT_MS = 2_000;
/**
 * With random ids a larger cache is slower. Nearly every batch splits a page, and the commit then
 * searches the whole cache (balance_nonroot in btree.c, pcache1Truncate in pcache1.c).
 */
const PAGE_CACHE_KIB = 8 * 1024;
/** Marks an SQLite database as a plant store: the four bytes "PLST". */
export const APPLICATION_ID = 0x504c5354;
/** https://sqlite.org/rescode.html */
const SQLITE_BUSY = 5;
const SQLITE_READONLY = 8;
const SQLITE_CORRUPT = 11;
const SQLITE_CANTOPEN = 14;
const SQLITE_NOTADB = 26;
/** The number of FULL in https://sqlite.org/pragma.html#pragma_synchronous */
const SYNCHRONOUS_FULL = 2;

/** https://man7.org/linux/man-pages/man5/proc_pid_mountinfo.5.html, only on Linux. */
const MOUNTS = '/proc/self/mountinfo';

const NEWEST_STEP = SCHEMA_STEPS.length;

/** Opens a store for writing, or creates it, and updates its schema. @throws {StoreRejected} */
export function openForWriting(path: string): DatabaseSync & { schemaSteps: SchemaSteps } {
  return explainFailure(path, () => {
    prepareFile(path);
    using opened = new DisposableStack();
    const database = opened.use(new DatabaseSync(path, { timeout: LOCK_TIMEOUT_MS }));
    // The check comes before the first write, so a file of another program does not change.
    schemaVersion(database, path);
    makeDurable(database, path);
    const schemaSteps = applySchemaSteps(database, path);
    rejectSchema(schemaFaults(database));
    opened.move();
    return Object.assign(database, { schemaSteps });
  });
}

/** A connection that only reads. */
export type ReadingDatabase = DatabaseSync & {
  /** Follows each read, also one that failed. @throws {StoreUnavailable} if the read may be wrong */
  rejectChange(): void;
};

/**
 * Opens an existing store for reading. A service may write to it at the same time.
 *
 * @throws {StoreMissing} @throws {StoreRejected}
 */
export function openForReading(path: string): ReadingDatabase {
  return explainFailure(path, () => {
    if (!fs.existsSync(path)) throw noStore(`at ${path}`);
    rejectOtherFile(path);
    try {
      return Object.assign(openReadOnly(path), { rejectChange: () => {} });
    } catch (error) {
      const code = primaryCode((error as { errcode?: number }).errcode);
      if (![SQLITE_CANTOPEN, SQLITE_READONLY].includes(code)) throw error;
      return openUnwritable(path, error);
    }
  });
}

/**
 * Opens a store in a folder that cannot be written. In WAL mode SQLite makes two files for a read,
 * unless the file is immutable (https://sqlite.org/c3ref/open.html). Then SQLite does not read the
 * write-ahead log, and does not notice a service that starts. So this function rejects a store with
 * a log, and `rejectChange` rejects a read during which a service started.
 */
function openUnwritable(path: string, cause: unknown): ReadingDatabase {
  const file = fs.realpathSync(path);
  const sizeOf = (suffix: string) => fs.statSync(`${file}${suffix}`, { throwIfNoEntry: false })?.size;
  const notRead = ['-wal', '-journal'].find(suffix => sizeOf(suffix));
  if (notRead !== undefined)
    throw new StoreRejected(
      `${path} cannot be read here: ${file}${notRead} belongs to it, and this user may not write beside it; ` +
        'copy both files into a folder that you may write to, and read the copy',
      { cause },
    );
  const isUsed = () => sizeOf('-shm') !== undefined || Boolean(sizeOf('-wal'));
  if (isUsed() || mayWrite(dirname(file))) throw cause;
  const stateOf = () => {
    const { ino, size, mtimeNs } = fs.statSync(file, { bigint: true });
    return `${ino} ${size} ${mtimeNs}`;
  };
  const before = stateOf();
  return Object.assign(openReadOnly(path, { immutable: '1' }), {
    rejectChange: () => {
      if (isUsed() || stateOf() !== before)
        throw new StoreUnavailable(`${path} was changed while it was read`);
    },
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
  if (version === 0) throw noStore(`at ${path}`);
  if (version < NEWEST_STEP) throw otherStep(path, version, NEWEST_STEP);
  opened.move();
  return database;
}

/** Reads both settings back: SQLite reports no error when it does not apply a setting. */
function makeDurable(database: DatabaseSync, path: string): void {
  const journalMode = database.prepare('PRAGMA journal_mode = WAL').get()?.journal_mode;
  // On macOS, fullfsync also flushes the cache of the drive. Other systems ignore it.
  database.exec(`PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA cache_size = -${PAGE_CACHE_KIB}`);
  const synchronous = database.prepare('PRAGMA synchronous').get()?.synchronous;
  if (journalMode !== 'wal' || synchronous !== SYNCHRONOUS_FULL) {
    throw new StoreRejected(
      `${path} cannot be written durably here: SQLite gave journal_mode=${journalMode}, ` +
        `synchronous=${synchronous} instead of wal and ${SYNCHRONOUS_FULL}; choose a local disk`,
    );
  }
}

/** Whether a store was opened for writing: a backup is in journal mode DELETE until then. */
export function wasOpenedForWriting(path: string): boolean {
  using database = openForReading(path);
  return database.prepare('PRAGMA journal_mode').get()?.journal_mode === 'wal';
}

/** Applies all missing steps in one transaction, so two processes may start at the same time. */
function applySchemaSteps(database: DatabaseSync, path: string): SchemaSteps {
  let before = schemaVersion(database, path);
  if (before === NEWEST_STEP) return { before, now: NEWEST_STEP };
  inTransaction(database, () => {
    before = schemaVersion(database, path);
    for (const sql of SCHEMA_STEPS.slice(before)) database.exec(sql);
    database.exec(`PRAGMA user_version = ${NEWEST_STEP}; PRAGMA application_id = ${APPLICATION_ID}`);
  });
  // If the write-ahead log were lost, a database file without the schema would be useless.
  database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  return { before, now: NEWEST_STEP };
}

/** Other tables do no harm, nor do indexes that are not unique. */
const SCHEMA_ITEMS = `SELECT type || ' ' || name, sql FROM sqlite_schema
  WHERE lower(tbl_name) IN
      ('plant_revision', 'plant', 'token', 'console_code', 'console_session', 'last_run', 'known_damage')
    AND sql IS NOT NULL AND (name = 'token_copy' OR sql NOT LIKE 'CREATE INDEX %')`;

/** @returns one text for each difference between the schema and that of the schema steps */
export function schemaFaults(database: DatabaseSync): string[] {
  using empty = new DatabaseSync(':memory:');
  empty.exec(SCHEMA_STEPS.join('\n'));
  const [ours, found] = [empty, database].map(each => {
    const rows = queryRows(each, SCHEMA_ITEMS, []) as [string, string][];
    return new Map(rows.map(([item, sql]) => [item, sql.replace(/\s+/g, ' ')]));
  });
  return schemaFaultsOf(ours!, found!);
}

export function inTransaction(database: DatabaseSync, write: () => void): void {
  database.exec('BEGIN IMMEDIATE');
  try {
    write();
    database.exec('COMMIT');
  } catch (error) {
    // After some errors, such as a full disk, SQLite has already rolled back.
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  }
}

/** The number of the last schema step that was applied; 0 for a new database. */
function schemaVersion(database: DatabaseSync, path: string): number {
  // One statement, because another process may commit a new store between two.
  // Litestream creates its own tables as soon as the file exists, even before the store does.
  const text = `SELECT application_id, user_version,
      EXISTS (SELECT 1 FROM sqlite_schema WHERE tbl_name NOT GLOB '_litestream_*'),
      EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'plant_revision')
    FROM pragma_application_id, pragma_user_version`;
  const [application, version, hasTables, hasPlants] = queryRows(database, text)[0]!.map(Number);
  if (application !== APPLICATION_ID && hasTables === 1) {
    const advice =
      hasPlants === 1
        ? `if it was restored from an SQL dump, which lacks two numbers, run: sqlite3 '${path}' ` +
          `'PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${NEWEST_STEP}'`
        : 'name another file with --database';
    throw new StoreRejected(`${path} is an SQLite database but not a plant store; ${advice}`);
  }
  if (version! > NEWEST_STEP) throw otherStep(path, version!, NEWEST_STEP);
  return version!;
}

/**
 * Creates the file of a store if needed, also where a symbolic link leads.
 *
 * @returns the path of the file itself: SQLite puts the write-ahead log there, not beside the link
 * @throws {StoreRejected} when it may have a second name
 */
export function prepareFile(path: string): string {
  makeFolder(path);
  rejectOtherFile(path);
  makeFile(path);
  return fs.realpathSync(path);
}

/**
 * Rejects what is no file, and a database file that may have a second name. SQLite derives the name
 * of the write-ahead log from the name of the file. A file with two names has two logs, which
 * corrupts it (https://sqlite.org/howtocorrupt.html, section 2.5). @throws {StoreRejected}
 */
export function rejectOtherFile(path: string): void {
  const stats = fs.statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return;
  if (!stats.isFile()) {
    const what = stats.isDirectory() ? 'a folder' : 'not a file';
    throw new StoreRejected(`${path} is ${what}; name a file, such as ${join(path, 'plant-store.db')}`);
  }
  if (stats.nlink > 1) {
    throw new StoreRejected(
      `${path} is one of ${stats.nlink} names (hard links) of the same file; keep only one of them`,
    );
  }
  if (isMountPoint(fs.realpathSync(path))) {
    throw new StoreRejected(
      `${path} is mounted as a single file, so it has a second name elsewhere; mount its folder instead`,
    );
  }
}

function isMountPoint(path: string): boolean {
  let mounts: string;
  try {
    mounts = fs.readFileSync(MOUNTS, 'utf8');
  } catch {
    return false;
  }
  // The kernel writes space, tab, line feed and backslash in octal: `\040`.
  const escaped = path.replace(/[ \t\n\\]/g, each => `\\${each.charCodeAt(0).toString(8).padStart(3, '0')}`);
  return mounts.split('\n').some(line => line.split(' ')[4] === escaped);
}

/**
 * Creates the folder of a default store. A missing folder elsewhere is probably a typing error.
 * The flush makes its name durable: a flush of a file does not include the entries of folders.
 */
function makeFolder(path: string): void {
  const folder = dirname(resolve(path));
  if (fs.existsSync(folder)) return;
  if (![DEFAULT_SQLITE_PATH, DEFAULT_SANDBOX_PATH].some(each => resolve(each) === resolve(path)))
    throw new StoreRejected(`the folder ${folder} does not exist; create it, or correct --database`);
  // `recursive` accepts a folder that another process has created meanwhile.
  fs.mkdirSync(folder, { recursive: true });
  flush(dirname(folder));
}

/** Device and inode, which identify a file independently of its name; undefined if there is none. */
export function identityOf(path: string): string | undefined {
  const stats = fs.statSync(path, { throwIfNoEntry: false, bigint: true });
  return stats && `${stats.dev}:${stats.ino}`;
}

/** Flushes a file, or the entries of a folder, to the disk. */
export function flush(path: string): void {
  const descriptor = fs.openSync(path, 'r');
  try {
    fs.fsyncSync(descriptor);
  } finally {
    fs.closeSync(descriptor);
  }
}

/**
 * Creates the file of a store, which only its owner may read. SQLite gives the log the same mode.
 * The mode of an existing file changes only if the file is empty, because it then becomes a store.
 *
 * An existing file is not even opened. A process that closes a file loses all its locks on the
 * file, including those of its SQLite connections (https://sqlite.org/howtocorrupt.html, section
 * 2.2).
 */
export function makeFile(path: string): void {
  const stats = fs.statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) fs.closeSync(fs.openSync(path, 'a', 0o600));
  else if (stats.isFile() && stats.size === 0 && (stats.mode & 0o077) !== 0) fs.chmodSync(path, 0o600);
}

/** @throws {StoreRejected} with advice; an internal error as it is */
export function explainFailure<T>(path: string, open: () => T): T {
  try {
    return open();
  } catch (error) {
    if (error instanceof StoreRejected || isInternal(error)) throw error;
    const { message, errcode } = error as Error & { errcode?: number };
    const advice =
      errcode === SQLITE_NOTADB
        ? 'it is not an SQLite database, or its first bytes are damaged; name another file with --database'
        : isDamage(errcode)
          ? 'the file is damaged; restore a backup'
          : isBusy(error)
            ? 'another program uses it; try again when that program has ended'
            : 'check that the folder exists, and that this user may write to it and to the file';
    throw new StoreRejected(`the store at ${path} cannot be opened (${message}); ${advice}`, {
      cause: error,
    });
  }
}

/** The file at the path of the database or its log is not the file that was opened. */
export class StoreFileReplaced extends StoreUnavailable {}

/** Whether our own code failed. SQLite names a result code, and a file system a system call. */
export function isInternal(error: unknown): boolean {
  const { errcode, syscall } = error as NodeJS.ErrnoException & { errcode?: number };
  return !(error instanceof StoreUnavailable) && errcode === undefined && syscall === undefined;
}

/** Wraps an error on an open store, such as a full disk or an internal error. A rejection stays. */
export function unavailable(error: unknown): StoreUnavailable | StoreInternalError | StoreRejected {
  if (error instanceof StoreRejected || error instanceof StoreUnavailable) return error;
  if (error instanceof StoreInternalError) return error;
  if (isInternal(error)) return new StoreInternalError(error);
  const { message, errcode } = error as Error & { errcode?: number };
  const code = errcode === undefined ? '' : ` (SQLite result code ${errcode})`;
  return new (isDamage(errcode) ? StoreDamaged : StoreUnavailable)(`${message}${code}`, { cause: error });
}

export function orUnavailable<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw unavailable(error);
  }
}

/** Whether SQLite met the lock of another connection. */
export function isBusy(error: unknown): boolean {
  return primaryCode((error as { errcode?: number }).errcode) === SQLITE_BUSY;
}

function isDamage(errcode = 0): boolean {
  return [SQLITE_CORRUPT, SQLITE_NOTADB].includes(primaryCode(errcode));
}

/** The low byte is the primary result code, https://sqlite.org/rescode.html */
function primaryCode(errcode = 0): number {
  return errcode & 0xff;
}
