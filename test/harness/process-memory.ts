import { readFileSync } from 'node:fs';

/** In bytes: what a process holds in memory now, or the most it held. proc_pid_status(5) */
export function residentBytesOf(pid: number, field: 'VmRSS' | 'VmHWM'): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(new RegExp(`${field}:\\s+([0-9]+) kB`).exec(status)?.[1]) * 1024;
}
