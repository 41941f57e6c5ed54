import { readFileSync } from 'node:fs';

/** The resident memory of a process now, or its peak, in bytes. proc_pid_status(5) */
export function residentBytesOf(pid: number, field: 'VmRSS' | 'VmHWM'): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(new RegExp(`${field}:\\s+([0-9]+) kB`).exec(status)?.[1]) * 1024;
}
