import { accessSync, chmodSync, constants, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A file system in memory that most Linux systems have. */
const MEMORY = '/dev/shm';
/** Several times what the tests that run at the same time use together. */
const FREE_MIN_BYTES = 4 * 1024 ** 3;

/**
 * Makes a folder in memory for temporary files; it is removed when this process exits. A PostgreSQL
 * server alone has a thousand files, and on some disks the creation of one takes a millisecond of
 * CPU time.
 *
 * @returns undefined if there is too little memory, or if a program in the folder could not run
 */
export function memoryFolder(): string | undefined {
  if (process.platform !== 'linux') return undefined;
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    if (Math.min(bavail * bsize, process.availableMemory()) < FREE_MIN_BYTES) return undefined;
    const folder = mkdtempSync(join(MEMORY, 'plant-store-'));
    process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
    // PostgreSQL may run as another user.
    chmodSync(folder, 0o755);
    const program = join(folder, 'program');
    writeFileSync(program, '', { mode: 0o700 });
    accessSync(program, constants.X_OK);
    return folder;
  } catch {
    return undefined;
  }
}
