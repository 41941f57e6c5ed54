import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';

/** The child processes of all threads of a process. */
export function childrenOf(pid: number): number[] {
  const tasks = `/proc/${pid}/task`;
  // `pgrep` needs procps, which some Linux systems lack. /proc exists only on Linux.
  const children = existsSync(tasks)
    ? readdirSync(tasks).map(task => readFileSync(`${tasks}/${task}/children`, 'utf8'))
    : [spawnSync('pgrep', ['-P', String(pid)], { encoding: 'utf8' }).stdout];
  return (children.join(' ').match(/\d+/g) ?? []).map(Number);
}
