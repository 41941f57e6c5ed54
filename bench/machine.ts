import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { cpus, release, totalmem, type } from 'node:os';
import { wrkVersion } from '../test/harness/load.ts';

/**
 * The machine and the programs that no package.json pins.
 *
 * @param folder contains the stores
 */
export function describeMachine(folder: string): string {
  return [
    `${cpus().length} × ${cpus()[0]?.model ?? process.arch}`,
    `${(totalmem() / 2 ** 30).toFixed(1)} GiB`,
    `${type()} ${release()}`,
    fileSystemOf(folder),
    `wrk ${wrkVersion()}`,
    `Node.js ${process.versions.node}`,
  ].join(', ');
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
