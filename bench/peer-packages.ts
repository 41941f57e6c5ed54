import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const FOLDER = fileURLToPath(new URL('./peers/', import.meta.url));

/**
 * Installs what the peers are made of, unless it is there as their lock file has it.
 *
 * @throws when npm fails; the plant store can be measured without
 */
export async function installPeers(): Promise<void> {
  const installed = changedAtMs('node_modules/.package-lock.json');
  if (installed >= changedAtMs('package-lock.json') && installed >= changedAtMs('nestjs-typeorm.ts')) return;
  console.error('installing the peers, once (npm ci in bench/peers)');
  const child = spawn('npm', ['ci'], { cwd: FOLDER, stdio: ['ignore', 2, 2] });
  const [exitCode] = await once(child, 'exit');
  if (exitCode !== 0) throw new Error(`npm ci in bench/peers ended with ${exitCode}`);
}

/** 0 for a file that is not there. */
function changedAtMs(file: string): number {
  return statSync(FOLDER + file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}
