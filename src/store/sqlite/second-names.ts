import { readFileSync, realpathSync, statSync } from 'node:fs';
import { StoreRejected } from '../plant-store.ts';

/** https://man7.org/linux/man-pages/man5/proc_pid_mountinfo.5.html, only on Linux. */
const MOUNTS = '/proc/self/mountinfo';

/**
 * Rejects a database file that may have a second name. SQLite derives the name of the write-ahead
 * log from the name of the file. A file with two names has two logs, which corrupts it
 * (https://sqlite.org/howtocorrupt.html, section 2.5). @throws {StoreRejected}
 */
export function rejectSecondNames(path: string): void {
  const stats = statSync(path, { throwIfNoEntry: false });
  // SQLite rejects a folder later with a better message.
  if (!stats?.isFile()) return;
  if (stats.nlink > 1) {
    throw new StoreRejected(
      `${path} is one of ${stats.nlink} names (hard links) of the same file; keep only one of them`,
    );
  }
  if (isMountPoint(realpathSync(path))) {
    throw new StoreRejected(
      `${path} is mounted as a single file, so it has a second name elsewhere; mount its folder instead`,
    );
  }
}

function isMountPoint(path: string): boolean {
  let mounts: string;
  try {
    mounts = readFileSync(MOUNTS, 'utf8');
  } catch {
    return false;
  }
  // The kernel writes space, tab, line feed and backslash in octal: `\040`.
  const escaped = path.replace(/[ \t\n\\]/g, each => `\\${each.charCodeAt(0).toString(8).padStart(3, '0')}`);
  return mounts.split('\n').some(line => line.split(' ')[4] === escaped);
}
