import { closeSync, lstatSync, openSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { flush } from '../../store/sqlite/database.ts';
import { Failure } from '../failure.ts';

/** The hashes of tokens are inside. */
const OWNER_ONLY = 0o600;

/**
 * The file that a backup becomes. Until it is whole, checked and on the disk it has another name, so that nobody takes a
 * part of one for a backup.
 */
export class BackupFile {
  /** Where it is made, beside its place. */
  readonly partial: string;
  readonly #file: string;

  private constructor(file: string) {
    this.#file = file;
    this.partial = `${resolve(file)}.partial`;
  }

  /** Makes it, empty, under its other name. @throws {Failure} when it cannot be made */
  static create(file: string): BackupFile {
    const backup = new BackupFile(file);
    backup.#refuseExisting();
    try {
      closeSync(openSync(backup.partial, 'wx', OWNER_ONLY));
      // Left by one that was killed, whose other file somebody has deleted.
      rmSync(`${backup.partial}-journal`, { force: true });
    } catch (error) {
      throw new Failure(whyNotMade(file, backup.partial, error as NodeJS.ErrnoException));
    }
    return backup;
  }

  /**
   * Flushes it to the disk and gives it its name.
   *
   * @returns its length in bytes
   * @throws {Failure} when another file has that name by now, or the disk fails
   */
  publish(): number {
    try {
      flush(this.partial);
      // Whoever else makes a backup of this name has no file of the other name before this one is gone.
      this.#refuseExisting();
      renameSync(this.partial, this.#file);
      flush(dirname(resolve(this.#file)));
      return statSync(this.#file).size;
    } catch (error) {
      if (error instanceof Failure) throw error;
      const { code } = error as NodeJS.ErrnoException;
      throw new Failure(
        `${this.#file} could not be flushed to the disk (${code}); do not rely on it, and make another one on another disk`,
      );
    }
  }

  /** Leaves nothing behind; after {@link publish} there is nothing to do. */
  discard(): void {
    rmSync(this.partial, { force: true });
    rmSync(`${this.partial}-journal`, { force: true });
  }

  /** Also a log that an earlier file of that name has left: SQLite would take it for the log of this one. */
  #refuseExisting(): void {
    for (const suffix of ['', '-wal', '-journal', '-shm']) {
      const taken = `${this.#file}${suffix}`;
      if (lstatSync(taken, { throwIfNoEntry: false }) === undefined) continue;
      const advice = suffix === '' ? '' : ', or move this one away, which may hold plants';
      throw new Failure(`${taken} is there already and stays as it is; name another file${advice}`);
    }
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
