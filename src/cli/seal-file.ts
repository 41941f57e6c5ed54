import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { publishNewFile } from './new-file.ts';
import { Failure } from './output/failure.ts';
import { formatCount } from './output/progress-display.ts';

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

/** Creates the whole file of a seal, durably. @param text of `sealText` @throws {Failure} */
export function writeSeal(file: string, text: string): void {
  const partial = `${file}.${process.pid}-${Date.now()}.partial`;
  try {
    // Like a store, only for its owner: it shows ids.
    writeFileSync(partial, text, { flag: 'wx', mode: 0o600 });
    publishNewFile(partial, file);
  } catch (error) {
    rmSync(partial, { force: true });
    const { code } = error as NodeJS.ErrnoException;
    throw new Failure(
      `the seal ${file} cannot be written (${code}); name a new file on a disk with free space`,
    );
  }
}

/** @param revisions the number of those whose time is ahead of the clock */
export function warnOfClock(revisions: number): void {
  if (revisions === 0) return;
  const which = revisions === 1 ? '1 revision has a time' : `${formatCount(revisions)} revisions have times`;
  console.error(
    `WARNING: ${which} ahead of this machine's clock; check the clocks; until the clock is past, the seal of \`verify\` does not cover them, and that of \`backup\` does`,
  );
}
