import { execFile } from 'node:child_process';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const PROGRAM = join(fileURLToPath(new URL('../../', import.meta.url)), 'bin/plant-store.js');
/** `npx` takes longer to start than the program. */
const NPX = `npx() { shift; node '${PROGRAM}' "$@"; }`;

/** Runs commands in a folder as a reader pastes them. @throws at the first that fails */
export async function paste(
  commands: string,
  folder: string,
  env: Record<string, string>,
): Promise<{ stdout: string; stderr: string }> {
  const path = [dirname(process.execPath), process.env.PATH].join(delimiter);
  return await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', `${NPX}\n${commands}`], {
    cwd: folder,
    env: { ...env, PATH: path },
  });
}
