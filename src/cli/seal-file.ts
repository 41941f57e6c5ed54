import { existsSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { flush } from '../store/sqlite/database.ts';
import { Failure } from './failure.ts';

/** `backup` writes the seal beside the backup. */
export const SEAL_SUFFIX = '.seal';

/** Checks early whether {@link writeSeal} can create a file. @throws {Failure} */
export function checkNewSeal(file: string): void {
  const why = existsSync(file)
    ? 'this file exists, and is not replaced'
    : existsSync(dirname(file))
      ? undefined
      : 'there is no such folder';
  if (why !== undefined) throw new Failure(`--seal ${file}: ${why}; name a new file`, 2);
}

/** Creates the file of a seal, durably. @param text of `sealText` @throws {Failure} */
export function writeSeal(file: string, text: string): void {
  try {
    // Like a store, only for its owner: it shows ids.
    writeFileSync(file, text, { flag: 'wx', mode: 0o600, flush: true });
    flush(dirname(resolve(file)));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new Failure(
      `the seal ${file} cannot be written (${code}); name a new file on a disk with free space`,
    );
  }
}
