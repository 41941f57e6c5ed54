import { randomUUID } from 'node:crypto';
import { closeSync, existsSync, linkSync, lstatSync, openSync, renameSync, rmSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { flush } from '../../engines/flush.ts';
import { Failure } from './failure.ts';

/** A backup contains the hashes of tokens, and a seal shows ids. */
const OWNER_ONLY = 0o600;

const ADVICE: Record<string, string> = {
  ENOENT: 'create its folder first, or name a file in another folder',
  ENOTDIR: 'name a file in a folder',
  ENOSPC: 'free disk space, or name a file on another disk',
  EIO: 'do not use this file; name a file on another disk',
};

/**
 * Creates a file. Until the file is complete and flushed to disk, it has a unique `.partial` name.
 * So a killed process does not block the next one.
 *
 * @param write fills the empty file of this path
 */
export async function makeNewFile<T>(file: string, write: (partial: string) => T | Promise<T>): Promise<T> {
  const partial = `${resolve(file)}.${randomUUID()}.partial`;
  try {
    closeSync(openSync(partial, 'wx', OWNER_ONLY));
    const written = await write(partial);
    publish(partial, file);
    return written;
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException;
    // Another process has created the file meanwhile.
    if (code === 'EEXIST') rejectExisting(file);
    throw syscall === undefined ? error : notWritten(file, code);
  } finally {
    for (const suffix of ['', '-journal', '-wal']) rmSync(`${partial}${suffix}`, { force: true });
  }
}

/** Gives the file its name by a link, since `rename` would replace a file of another process. */
function publish(partial: string, file: string): void {
  flush(partial);
  try {
    linkSync(partial, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw error;
    // Some file systems have no links, such as exFAT.
    renameSync(partial, file);
  }
  flush(dirname(resolve(file)));
}

/** Tests early whether {@link makeNewFile} can create a file. @throws {Failure} */
export function checkNewFile(file: string): void {
  rejectExisting(file);
  if (!existsSync(dirname(resolve(file)))) throw notWritten(file, 'ENOENT');
}

/** @throws {Failure} if the name is in use, also by a link that leads nowhere */
export function rejectExisting(file: string, advice = 'name another file'): void {
  if (lstatSync(file, { throwIfNoEntry: false }) === undefined) return;
  throw new Failure(`${file} already exists and was not changed; ${advice}`);
}

function notWritten(file: string, code = ''): Failure {
  const advice = ADVICE[code] ?? 'name a file in a folder that you may write to, on a disk with free space';
  return new Failure(`${file} cannot be created (${code}); ${advice}`);
}
