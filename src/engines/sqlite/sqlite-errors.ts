import {
  StoreDamaged,
  StoreInternalError,
  StoreRejected,
  StoreUnavailable,
} from '../../core/commit/store-errors.ts';
import { DATABASE_OPTION } from '../store-rejections.ts';

/** https://sqlite.org/rescode.html */
const SQLITE_BUSY = 5;
const SQLITE_READONLY = 8;
const SQLITE_CORRUPT = 11;
const SQLITE_FULL = 13;
const SQLITE_CANTOPEN = 14;
const SQLITE_NOTADB = 26;

/** The file at the path of the database or its log is not the file that was opened. */
export class StoreFileReplaced extends StoreUnavailable {
  override name = 'StoreFileReplaced';
}

/** Opens a store. @throws {StoreRejected} with advice, and an internal error as it is */
export function orRejected<T>(path: string, open: () => T): T {
  try {
    return open();
  } catch (error) {
    if (error instanceof StoreRejected || isInternal(error)) throw error;
    const { message, errcode } = error as Error & { errcode?: number };
    const advice =
      errcode === SQLITE_NOTADB
        ? `it is not an SQLite database, or its first bytes are damaged; name another file with ${DATABASE_OPTION}`
        : isDamage(errcode)
          ? 'the file is damaged; restore a backup'
          : isBusy(error)
            ? 'another program uses it; try again when that program has ended'
            : 'check that the folder exists, and that this user may write to it and to the file';
    throw new StoreRejected(`the store at ${path} cannot be opened (${message})`, { advice, cause: error });
  }
}

/** Wraps an error on an open store, such as a full disk. Returns an error of the store as it is. */
export function storeFailure(error: unknown): StoreUnavailable | StoreInternalError | StoreRejected {
  if (error instanceof StoreRejected || error instanceof StoreUnavailable) return error;
  if (error instanceof StoreInternalError) return error;
  if (isInternal(error)) return new StoreInternalError(error);
  const { message, errcode } = error as Error & { errcode?: number };
  const code = errcode === undefined ? '' : ` (SQLite result code ${errcode})`;
  const Failure = isDamage(errcode) ? StoreDamaged : StoreUnavailable;
  return new Failure(`${message}${code}`, { cause: error });
}

/** Runs work on an open store, and wraps its failure with {@link storeFailure}. */
export function orStoreFailure<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw storeFailure(error);
  }
}

/** Whether our own code failed. SQLite names a result code, and a file system a system call. */
export function isInternal(error: unknown): boolean {
  const { errcode, syscall } = error as NodeJS.ErrnoException & { errcode?: number };
  return !(error instanceof StoreUnavailable) && errcode === undefined && syscall === undefined;
}

/** Whether SQLite found the lock of another connection. */
export function isBusy(error: unknown): boolean {
  return primaryCode((error as { errcode?: number }).errcode) === SQLITE_BUSY;
}

/** Whether SQLite found the disk full. */
export function isFullDisk(error: { errcode?: number | undefined }): boolean {
  return primaryCode(error.errcode) === SQLITE_FULL;
}

/** Whether SQLite may not write beside the file, where it makes files for a read in WAL mode. */
export function isUnwritable(error: unknown): boolean {
  const code = primaryCode((error as { errcode?: number }).errcode);
  return [SQLITE_CANTOPEN, SQLITE_READONLY].includes(code);
}

function isDamage(errcode = 0): boolean {
  return [SQLITE_CORRUPT, SQLITE_NOTADB].includes(primaryCode(errcode));
}

/** The low byte is the primary result code, https://sqlite.org/rescode.html */
function primaryCode(errcode = 0): number {
  return errcode & 0xff;
}
