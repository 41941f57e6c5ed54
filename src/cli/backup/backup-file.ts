import { closeSync, lstatSync, openSync, rmSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { publishNewFile } from '../new-file.ts';
import { Failure } from '../output/failure.ts';
import { SEAL_SUFFIX } from '../seal-file.ts';

/** The file contains the hashes of tokens. */
const OWNER_ONLY = 0o600;

/**
 * Creates the file of a backup. Until it is complete, checked and flushed to disk, its name ends in
 * `.partial`. An incomplete copy never has the name of a backup. A failure removes it. Each backup
 * has its own `.partial` name. So a killed backup blocks no other, and none changes a running one.
 *
 * @param write fills and checks the file; its argument is the path of an empty file
 * @returns the result of `write`, and the length of the file in bytes
 * @throws {Failure} if the file cannot be created, its name is in use, or the disk fails
 */
export async function makeBackupFile<T>(
  file: string,
  write: (partial: string) => Promise<T>,
): Promise<{ written: T; bytes: number }> {
  const partial = `${resolve(file)}.${process.pid}-${Date.now()}.partial`;
  rejectExisting(file);
  try {
    closeSync(openSync(partial, 'wx', OWNER_ONLY));
  } catch (error) {
    throw new Failure(whyNotMade(file, error as NodeJS.ErrnoException));
  }
  try {
    const written = await write(partial);
    return { written, bytes: publish(partial, file) };
  } finally {
    rmSync(partial, { force: true });
    rmSync(`${partial}-journal`, { force: true });
  }
}

function publish(partial: string, file: string): number {
  try {
    rejectExisting(file);
    publishNewFile(partial, file);
    return statSync(file).size;
  } catch (error) {
    if (error instanceof Failure) throw error;
    const { code } = error as NodeJS.ErrnoException;
    // A second backup to this name ended first.
    if (code === 'EEXIST') rejectExisting(file);
    throw new Failure(
      `${file} could not be flushed to disk (${code}); do not use this file; run the command again with a file on another disk`,
    );
  }
}

/** Also rejects an old write-ahead log or journal: SQLite would apply it to the backup. */
function rejectExisting(file: string): void {
  for (const suffix of ['', SEAL_SUFFIX, '-wal', '-journal', '-shm']) {
    const existing = `${file}${suffix}`;
    if (lstatSync(existing, { throwIfNoEntry: false }) === undefined) continue;
    const advice = !suffix.startsWith('-') ? '' : ', or move this file away; it may contain plants';
    throw new Failure(`${existing} already exists and was not changed; name another file${advice}`);
  }
}

function whyNotMade(file: string, { code }: NodeJS.ErrnoException): string {
  const advice = {
    ENOENT: 'create its folder first, or name a file in another folder',
    ENOTDIR: 'name a file in a folder',
    ENOSPC: 'free disk space, or name a file on another disk',
  };
  const whatToDo = advice[code as keyof typeof advice] ?? 'name a file in a folder that you may write to';
  return `${file} cannot be created (${code}); ${whatToDo}`;
}
