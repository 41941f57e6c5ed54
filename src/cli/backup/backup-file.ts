import { closeSync, lstatSync, openSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { flush } from '../../store/sqlite/database.ts';
import { Failure } from '../failure.ts';

/** The hashes of tokens are inside. */
const OWNER_ONLY = 0o600;

/**
 * Makes the file of a backup. Until it is whole, checked and on the disk it has another name, so that nobody takes a part
 * of one for a backup. A failure leaves nothing behind.
 *
 * @param write fills and checks the file; it gets the other name, under which there is an empty file
 * @returns what `write` returned, and the length of the file in bytes
 * @throws {Failure} when the file cannot be made, another one has its name, or the disk fails
 */
export async function makeBackupFile<T>(
  file: string,
  write: (partial: string) => Promise<T>,
): Promise<{ written: T; bytes: number }> {
  const partial = `${resolve(file)}.partial`;
  rejectExisting(file);
  try {
    closeSync(openSync(partial, 'wx', OWNER_ONLY));
    // Left by one that was killed, whose other file somebody has deleted.
    rmSync(`${partial}-journal`, { force: true });
  } catch (error) {
    throw new Failure(whyNotMade(file, partial, error as NodeJS.ErrnoException));
  }
  try {
    const written = await write(partial);
    return { written, bytes: publish(partial, file) };
  } finally {
    rmSync(partial, { force: true });
    rmSync(`${partial}-journal`, { force: true });
  }
}

/** Flushes it to the disk and gives it its name. */
function publish(partial: string, file: string): number {
  try {
    flush(partial);
    // Whoever else makes a backup of this name has no file of the other name before this one is gone.
    rejectExisting(file);
    renameSync(partial, file);
    flush(dirname(resolve(file)));
    return statSync(file).size;
  } catch (error) {
    if (error instanceof Failure) throw error;
    const { code } = error as NodeJS.ErrnoException;
    throw new Failure(
      `${file} could not be flushed to the disk (${code}); do not rely on it, and make another one on another disk`,
    );
  }
}

/** Also a log that an earlier file of that name has left: SQLite would take it for the log of this one. */
function rejectExisting(file: string): void {
  for (const suffix of ['', '-wal', '-journal', '-shm']) {
    const taken = `${file}${suffix}`;
    if (lstatSync(taken, { throwIfNoEntry: false }) === undefined) continue;
    const advice = suffix === '' ? '' : ', or move this one away, which may hold plants';
    throw new Failure(`${taken} is there already and stays as it is; name another file${advice}`);
  }
}

function whyNotMade(file: string, partial: string, { code }: NodeJS.ErrnoException): string {
  if (code === 'EEXIST') {
    return `${partial} is there: another backup is writing it, or one was killed; delete it if none is running`;
  }
  const advice = {
    ENOENT: 'make the folder first, or name a file in another one',
    ENOTDIR: 'name a file in a folder',
    ENOSPC: 'make room on the disk, or name a file on another one',
  };
  const whatToDo = advice[code as keyof typeof advice] ?? 'name a file in a folder that you may write to';
  return `${file} cannot be made (${code}); ${whatToDo}`;
}
