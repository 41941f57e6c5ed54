import { readdirSync, readFileSync, statSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { runLoad, runOpenLoop } from '../test/harness/load.ts';
import { startServe } from '../test/harness/program.ts';
import { residentBytesOf } from '../test/harness/server-process.ts';
import { median } from '../test/harness/statistics.ts';
import { mebibytes } from './figures.ts';
import { type Ordeal, type OrdealResult, procObstacle } from './ordeal.ts';

const CONNECTIONS = 64;
const MEASURE_SECONDS = 5;
const SAMPLE_INTERVAL_MS = 1_000;
/** Memory is still finding its level before that: five minutes, or a sixth of a shorter run. */
const SETTLING_MS_MAX = 300_000;
const GROWTH_MAX = 0.05;
/** Far above the 16 MiB from which the log is begun anew, and far below what is written in a minute. */
const LOG_BYTES_MAX = 128 * 1024 * 1024;

interface Sample {
  residentBytes: number;
  logBytes: number;
  descriptors: number;
  threads: number;
}

export const soak: Ordeal = {
  name: 'soak',
  summary: 'half of what the service holds, for as long as there is time: nothing may grow but the store',
  finds: [],
  obstacle: procObstacle,
  async run({ budgetMs, signal, tell }) {
    const folder = await mkdtemp(join(tmpdir(), 'plant-store-soak-'));
    const path = join(folder, 'plants.db');
    const { child, url, token, stop } = await startServe(`sqlite:${path}`);
    try {
      const load = { url, token, connections: CONNECTIONS };
      const { ratePerSecond } = await runLoad({ ...load, seconds: MEASURE_SECONDS, signal });
      const seconds = Math.max(10, Math.floor(budgetMs / 1000) - MEASURE_SECONDS - 5);
      tell(`${Math.round(ratePerSecond / 2)} plants/s for ${seconds} s`);
      // What fails of the two ends the other.
      const over = new AbortController();
      const end = (): void => over.abort();
      const loadSignal = AbortSignal.any([signal, over.signal]);
      const [samples, result] = await Promise.all([
        samplesOf(child.pid!, path, over.signal).finally(end),
        runOpenLoop({ ...load, seconds, ratePerSecond: ratePerSecond / 2, signal: loadSignal }).finally(end),
      ]);
      const judged = judge(samples, seconds * 1000);
      const { requests, failures, unanswered, p50Us, p99Us, maxUs } = result;
      if (failures + unanswered > 0)
        judged.faults.push(`${failures} failed and ${unanswered} without an answer`);
      return {
        faults: judged.faults,
        figures: {
          ...judged.figures,
          'answered 200': requests,
          'failed, unanswered': `${failures}, ${unanswered}`,
          'latency p50, p99, max in ms': [p50Us, p99Us, maxUs].map(us => (us / 1000).toFixed(1)).join(', '),
        },
      };
    } finally {
      await stop('SIGTERM');
      await rm(folder, { recursive: true });
    }
  },
};

function judge(samples: Sample[], loadMs: number): OrdealResult {
  const settlingMs = Math.min(SETTLING_MS_MAX, loadMs / 6);
  const settled = samples.slice(
    Math.ceil(settlingMs / SAMPLE_INTERVAL_MS),
    Math.floor(loadMs / SAMPLE_INTERVAL_MS),
  );
  // Medians of a tenth each: memory goes up and down by as much between two collections.
  const tenth = Math.max(1, Math.floor(settled.length / 10));
  const bytesOf = (part: Sample[]): number => median(part.map(({ residentBytes }) => residentBytes));
  const [firstBytes, lastBytes] = [bytesOf(settled.slice(0, tenth)), bytesOf(settled.slice(-tenth))];
  const growth = lastBytes / firstBytes - 1;
  const logBytes = Math.max(...samples.map(each => each.logBytes));
  const faults: string[] = [];
  if (growth >= GROWTH_MAX) faults.push(`memory grew by ${(growth * 100).toFixed(1)} %`);
  if (logBytes > LOG_BYTES_MAX) faults.push(`the write-ahead log reached ${logBytes} bytes`);
  const figures: OrdealResult['figures'] = {
    'memory at first and at last in MiB': `${mebibytes(firstBytes)}, ${mebibytes(lastBytes)}`,
    'growth of memory in %': (growth * 100).toFixed(1),
    'longest write-ahead log in MiB': mebibytes(logBytes),
  };
  for (const what of ['descriptors', 'threads'] as const) {
    const counts = settled.map(each => each[what]);
    const [least, most] = [Math.min(...counts), Math.max(...counts)];
    figures[what] = least === most ? least : `${least} to ${most}`;
    if (least !== most) faults.push(`${what} went from ${least} to ${most}`);
  }
  return { faults, figures };
}

/** One each second, until the signal. */
async function samplesOf(pid: number, path: string, signal: AbortSignal): Promise<Sample[]> {
  const samples: Sample[] = [];
  while (!signal.aborted) {
    samples.push(sample(pid, path));
    await wait(SAMPLE_INTERVAL_MS);
  }
  return samples;
}

function sample(pid: number, path: string): Sample {
  return {
    residentBytes: residentBytesOf(pid, 'VmRSS'),
    logBytes: statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0,
    descriptors: readdirSync(`/proc/${pid}/fd`).length,
    threads: Number(/^Threads:\s+([0-9]+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]),
  };
}
