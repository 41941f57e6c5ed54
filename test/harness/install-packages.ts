/**
 * Installs the packages of a folder, as its own lock file has them. A folder that has them already is left alone.
 *
 *   node test/harness/install-packages.ts test
 */
import { execFileSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { join } from 'node:path';

/**
 * @param folder one with a package.json and a package-lock.json
 * @throws when npm fails
 */
export function installPackages(folder: string): void {
  // npm writes the first of these when it has installed everything.
  const installed = changedAtMs(join(folder, 'node_modules/.package-lock.json'));
  if (installed >= changedAtMs(join(folder, 'package-lock.json'))) return;
  console.error(`installing the packages of ${folder} (npm ci)`);
  // Windows starts npm, which is a script there, by a shell only.
  execFileSync('npm', ['ci'], {
    cwd: folder,
    stdio: ['ignore', 2, 2],
    shell: process.platform === 'win32',
  });
}

/** 0 for a file that is not there. */
function changedAtMs(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

const [folder] = process.argv.slice(2);
if (import.meta.main && folder !== undefined) installPackages(folder);
