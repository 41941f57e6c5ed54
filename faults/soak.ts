import { readdirSync, readFileSync, statSync } from 'node:fs';
import { runLoad, runOpenLoop } from '../test/harness/load.ts';
import { residentBytesOf } from '../test/harness/process-memory.ts';
import { startServe } from '../test/harness/program.ts';
import { median } from '../test/harness/statistics.ts';
import { mebibytes, newSqliteFile, type Result, type Scenario } from './scenario.ts';

const CONNECTIONS = 64;
const MEASURE_SECONDS = 5;
const SAMPLE_INTERVAL_MS = 1_000;
/** Memory is still finding its level before that: five minutes, or a sixth of a shorter run. */
const SETTLING_SECONDS_MAX = 300;
const GROWTH_MAX = 0.05;
/** Far above the 16 MiB from which the log is begun anew, and far below what is written in a minute. */
const LOG_BYTES_MAX = 128 * 1024 * 1024;

interface Sample {
  residentBytes: number;
  logBytes: number;
  descriptors: number;
  threads: number;
}

export const soak: Scenario = {
  name: 'soak',
  summary: 'half of what the service holds, for as long as there is time: nothing may grow but the store',
  needs: ['linux'],
  secondsMin: 20,
  finds: [],
  async run({ budgetMs, signal, tell }) {
    await using opened = new AsyncDisposableStack();
    const path = newSqliteFile(opened);
    const { child, url, token, stop } = await startServe(`sqlite:${path}`);
    opened.defer(async () => void (await stop('SIGTERM')));
    const load = { url, token, connections: CONNECTIONS };
    const { ratePerSecond } = await runLoad({ ...load, seconds: MEASURE_SECONDS, signal });
    const seconds = Math.max(10, Math.floor(budgetMs / 1000) - MEASURE_SECONDS - 5);
    tell(`${Math.round(ratePerSecond / 2)} plants/s for ${seconds} s`);
    const samples: Sample[] = [];
    const sampling = setInterval(() => samples.push(sample(child.pid!, path)), SAMPLE_INTERVAL_MS);
    opened.defer(() => clearInterval(sampling));
    const half = await runOpenLoop({ ...load, seconds, ratePerSecond: ratePerSecond / 2, signal });
    const { faults, figures } = assess(samples, seconds);
    const { requests, failures, pending } = half;
    if (failures + pending > 0) faults.push(`${failures} failed and ${pending} without a response`);
    const latencies = [half.p50Us, half.p99Us, half.maxUs].map(us => (us / 1000).toFixed(1));
    return {
      faults,
      figures: { ...figures, 'answered 200': requests, 'latency p50, p99, max in ms': latencies.join(', ') },
    };
  },
};

function assess(samples: readonly Sample[], seconds: number): Result {
  const settled = samples.slice(Math.ceil(Math.min(SETTLING_SECONDS_MAX, seconds / 6)), seconds);
  // Medians of a tenth each: memory goes up and down by as much between two collections.
  const tenth = Math.max(1, Math.floor(settled.length / 10));
  const bytesOf = (part: Sample[]): number => median(part.map(({ residentBytes }) => residentBytes));
  const [firstBytes, lastBytes] = [bytesOf(settled.slice(0, tenth)), bytesOf(settled.slice(-tenth))];
  const growth = lastBytes / firstBytes - 1;
  const logBytes = Math.max(...samples.map(each => each.logBytes));
  const faults: string[] = [];
  if (growth >= GROWTH_MAX) faults.push(`memory grew by ${(growth * 100).toFixed(1)} %`);
  if (logBytes > LOG_BYTES_MAX) faults.push(`the write-ahead log reached ${logBytes} bytes`);
  const figures: Result['figures'] = {
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

function sample(pid: number, path: string): Sample {
  return {
    residentBytes: residentBytesOf(pid, 'VmRSS'),
    logBytes: statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0,
    descriptors: readdirSync(`/proc/${pid}/fd`).length,
    threads: Number(/^Threads:\s+([0-9]+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]),
  };
}
