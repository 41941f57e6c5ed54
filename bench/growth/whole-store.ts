import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { startProgram } from '../../test/harness/program.ts';
import { residentBytesOf } from '../../test/harness/server-process.ts';
import { type Curve, measureInRounds, powersOfTen } from './curve.ts';
import { withService } from './service-load.ts';

const MIB = 1024 * 1024;
const MEMORY_SAMPLE_INTERVAL_MS = 20;

/** How long it takes to have every plant of a store. */
export const exportCurve: Curve = {
  name: 'export',
  title: 'Export of a store',
  description:
    'Plants a second and the most memory that `plant-store export` takes as CSV, by the plants stored.',
  x: { label: 'plants stored', scale: 'log' },
  panels: [
    { y: { label: 'plants/s', scale: 'linear' }, figure: 'plantsPerSecond' },
    { y: { label: 'peak memory, MiB', scale: 'linear' }, figure: 'residentPeakBytes', unit: MIB },
  ],
  measure: bench => {
    const sizes = powersOfTen(1e5, bench.plantsMax).map(at => ({ at, of: 'export' }));
    return measureInRounds(bench, sizes, ({ at }) => measureExport(bench.stores.original(at), at));
  },
};

/** How long a service takes to start. */
export const start: Curve = {
  name: 'start',
  title: 'Start of the service',
  description: 'Milliseconds from the start of the process to its first answer 200, by the plants stored.',
  x: { label: 'plants stored', scale: 'log' },
  panels: [{ y: { label: 'start to first 200, ms', scale: 'linear' }, figure: 'startMs' }],
  measure: bench => {
    const sizes = powersOfTen(1e3, bench.plantsMax).map(at => ({ at, of: 'start' }));
    return measureInRounds(bench, sizes, ({ at }) =>
      withService(
        async ({ startMs }) => ({ startMs }),
        path => bench.stores.copy(at, path),
      ),
    );
  },
};

/** To a reader that drops it: what a disk would take for the file is not what is asked. */
async function measureExport(path: string, plants: number): Promise<Record<string, number>> {
  const sinceMs = performance.now();
  const child = startProgram(['export', '--database', `sqlite:${path}`]);
  child.stdout!.resume();
  child.stderr!.resume();
  const ended = once(child, 'close').then(() => performance.now());
  let residentPeakBytes = 0;
  while (child.exitCode === null && child.signalCode === null) {
    residentPeakBytes = Math.max(residentPeakBytes, residentPeakOf(child.pid!));
    await wait(MEMORY_SAMPLE_INTERVAL_MS);
  }
  const seconds = ((await ended) - sinceMs) / 1000;
  if (child.exitCode !== 0) throw new Error(`the export of ${path} ended with ${child.exitCode}`);
  return { seconds, plantsPerSecond: plants / seconds, residentPeakBytes };
}

/** 0 for a process that has ended and is not collected yet: it has no memory any more. */
function residentPeakOf(pid: number): number {
  return existsSync(`/proc/${pid}`) ? residentBytesOf(pid, 'VmHWM') || 0 : 0;
}
