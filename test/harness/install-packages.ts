/**
 * Installs the packages in the lock file of each folder, unless they are installed.
 *
 *   node test/harness/install-packages.ts packaging/compiler test
 */
import { execFileSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { join } from 'node:path';

export function installPackages(folder: string): void {
  // npm writes node_modules/.package-lock.json after it has installed everything.
  const installed = changedAtMs(join(folder, 'node_modules/.package-lock.json'));
  if (installed >= changedAtMs(join(folder, 'package-lock.json'))) return;
  console.error(`installing the packages of ${folder} (npm ci)`);
  // On Windows npm is a script, which only a shell can start.
  execFileSync('npm', ['ci'], {
    cwd: folder,
    stdio: ['ignore', 2, 2],
    shell: process.platform === 'win32',
  });
}

/** @returns 0 for a missing file */
function changedAtMs(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

if (import.meta.main) for (const folder of process.argv.slice(2)) installPackages(folder);
