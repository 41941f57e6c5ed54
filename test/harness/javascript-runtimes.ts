import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** A runtime that can run a JavaScript program. */
interface JavaScriptRuntime {
  name: string;
  executable: string;
  /** Arguments before the path of the program. */
  args: readonly string[];
}

/** The oldest major version of Node that the client supports. */
const NODE_MIN = 20;
const PACKAGES = fileURLToPath(new URL('../node_modules/', import.meta.url));
// Deno denies everything that is not allowed here: the network, and two environment variables.
const DENO = ['run', '--allow-net=127.0.0.1', '--allow-env=PLANT_STORE_URL,PLANT_STORE_TOKEN'];

/** The runtimes of this machine that the client supports: every version of Node, Bun and Deno. */
export const JAVASCRIPT_RUNTIMES: readonly JavaScriptRuntime[] = [
  ...nodes(),
  { name: 'Bun', executable: `${PACKAGES}bun/bin/bun.exe`, args: [] },
  { name: 'Deno', executable: `${PACKAGES}deno/deno`, args: DENO },
];

/** The Node of the tests, and every other version on the PATH. */
function nodes(): JavaScriptRuntime[] {
  const byVersion = new Map([[process.version, process.execPath]]);
  const file = process.platform === 'win32' ? 'node.exe' : 'node';
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    const executable = join(folder, file);
    if (!existsSync(executable)) continue;
    const version = execFileSync(executable, ['--version'], { encoding: 'utf8' }).trim();
    if (!byVersion.has(version)) byVersion.set(version, executable);
  }
  return [...byVersion]
    .filter(([version]) => Number(/\d+/.exec(version)![0]) >= NODE_MIN)
    .map(([version, executable]) => ({ name: `Node ${version}`, executable, args: [] }));
}
