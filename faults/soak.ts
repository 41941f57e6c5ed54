import { readdirSync, readFileSync, statSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { Load } from '../test/harness/load.ts';
import { residentBytesOf } from '../test/harness/process-memory.ts';
import { startServe } from '../test/harness/program.ts';
import { median } from '../test/harness/statistics.ts';
import { mebibytes, newSqliteFile, type Result, type Scenario } from './scenario.ts';

const CONNECTIONS = 64;
const MEASURE_SECONDS = 5;
const SAMPLE_INTERVAL_MS = 1_000;
/** The measurement starts after this time, or after a sixth of a short run. */
const SETTLING_MAX_SECONDS = 300;
const GROWTH_MAX = 0.05;
/**
 * Far above the 16 MiB at which the write-ahead log restarts, and far below its growth in a minute.
 */
const WAL_MAX_BYTES = 128 * 1024 * 1024;

interface Sample {
  residentBytes: number;
  walBytes: number;
  descriptors: number;
  threads: number;
}

export const soak: Scenario = {
  name: 'soak',
  summary: 'half of the rate that the service can process, for the whole time: only the store may grow',
  needs: ['linux'],
  secondsMin: 20,
  finds: [],
  async run({ budgetMs, signal, tell }) {
    await using opened = new AsyncDisposableStack();
    const path = newSqliteFile(opened);
    const { child, url, token, stop } = await startServe(`sqlite:${path}`);
    opened.defer(async () => void (await stop('SIGTERM')));
    const load = { url, token, connections: CONNECTIONS };
    const measuring = opened.use(new Load(load, signal));
    await wait(MEASURE_SECONDS * 1000, undefined, { signal });
    const ratePerSecond = ((await measuring.end()).responses[200]?.count ?? 0) / MEASURE_SECONDS;
    const seconds = Math.max(10, Math.floor(budgetMs / 1000) - MEASURE_SECONDS - 5);
    tell(`${Math.round(ratePerSecond / 2)} plants/s for ${seconds} s`);
    const samples: Sample[] = [];
    const sampling = setInterval(() => samples.push(sample(child.pid!, path)), SAMPLE_INTERVAL_MS);
    opened.defer(() => clearInterval(sampling));
    const half = opened.use(
      new Load({ ...load, open: { ratePerSecond: ratePerSecond / 2, seconds } }, signal),
    );
    const { responses, lost, pending } = await half.result;
    const { faults, measurements } = assess(samples, seconds);
    const { 200: stored, ...others } = responses;
    if (Object.keys(others).length + lost + pending > 0)
      faults.push(`responses ${JSON.stringify(others)}, ${lost + pending} requests without a response`);
    const { count, p50Us, p99Us, maxUs } = stored ?? { count: 0, p50Us: 0, p99Us: 0, maxUs: 0 };
    const latencies = [p50Us, p99Us, maxUs].map(us => (us / 1000).toFixed(1));
    return {
      faults,
      measurements: {
        ...measurements,
        'responses 200': count,
        'latency p50, p99, max in ms': latencies.join(', '),
      },
    };
  },
};

function assess(samples: readonly Sample[], seconds: number): Result {
  const settled = samples.slice(Math.ceil(Math.min(SETTLING_MAX_SECONDS, seconds / 6)), seconds);
  // Compares medians of a tenth each, because memory varies between two garbage collections.
  const tenth = Math.max(1, Math.floor(settled.length / 10));
  const bytesOf = (part: Sample[]): number => median(part.map(({ residentBytes }) => residentBytes));
  const [firstBytes, lastBytes] = [bytesOf(settled.slice(0, tenth)), bytesOf(settled.slice(-tenth))];
  const growth = lastBytes / firstBytes - 1;
  const walBytes = Math.max(...samples.map(each => each.walBytes));
  const faults: string[] = [];
  if (growth >= GROWTH_MAX) faults.push(`memory grew by ${(growth * 100).toFixed(1)} %`);
  if (walBytes > WAL_MAX_BYTES) faults.push(`the write-ahead log reached ${walBytes} bytes`);
  const measurements: Result['measurements'] = {
    'memory at the start and at the end in MiB': `${mebibytes(firstBytes)}, ${mebibytes(lastBytes)}`,
    'growth of memory in %': (growth * 100).toFixed(1),
    'largest write-ahead log in MiB': mebibytes(walBytes),
  };
  for (const what of ['descriptors', 'threads'] as const) {
    const counts = settled.map(each => each[what]);
    const [min, max] = [Math.min(...counts), Math.max(...counts)];
    measurements[what] = min === max ? min : `${min} to ${max}`;
    if (min !== max) faults.push(`${what} went from ${min} to ${max}`);
  }
  return { faults, measurements };
}

function sample(pid: number, path: string): Sample {
  return {
    residentBytes: residentBytesOf(pid, 'VmRSS'),
    walBytes: statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0,
    descriptors: readdirSync(`/proc/${pid}/fd`).length,
    threads: Number(/^Threads:\s+([0-9]+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]),
  };
}
