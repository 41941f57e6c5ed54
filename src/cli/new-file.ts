import { linkSync, renameSync, rmSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { flush } from '../store/sqlite/database.ts';

/**
 * Flushes a complete file to disk, then gives it its final name. Fails with EEXIST if another
 * process has just created a file of this name, which `rename` alone would replace.
 */
export function publishNewFile(partial: string, file: string): void {
  flush(partial);
  try {
    linkSync(partial, file);
    rmSync(partial);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw error;
    // Some file systems have no links, such as exFAT.
    renameSync(partial, file);
  }
  flush(dirname(resolve(file)));
}
