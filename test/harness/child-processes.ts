import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';

/** The processes that a process has started, by any of its threads. */
export function childrenOf(pid: number): number[] {
  const tasks = `/proc/${pid}/task`;
  // Without procps there is no `pgrep`, and without Linux no /proc.
  const children = existsSync(tasks)
    ? readdirSync(tasks).map(task => readFileSync(`${tasks}/${task}/children`, 'utf8'))
    : [spawnSync('pgrep', ['-P', String(pid)], { encoding: 'utf8' }).stdout];
  return (children.join(' ').match(/\d+/g) ?? []).map(Number);
}
