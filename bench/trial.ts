import { spawnSync } from 'node:child_process';
import { type DisposableTempDir, mkdtempDisposableSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runWrk, type WrkResult, type WrkSettings } from '../test/harness/load.ts';
import { residentBytesOf } from '../test/harness/process-memory.ts';
import type { Measurement } from './measurements.ts';
import { cpuUsOf } from './server-process.ts';
import type { RunningSubject, Subject } from './subjects.ts';

const WARM_UP_CONNECTIONS = 64;

/** The duration and number of loads, and a signal that ends them. */
export interface Durations {
  rounds: number;
  /** The duration of the warm-up: runtimes compile hot code only after some seconds. */
  warmUpSeconds: number;
  seconds: number;
  signal: AbortSignal;
}

/** A subject with its loads. */
export interface Plan {
  subject: Subject;
  connections: readonly number[];
  ids?: 'ascending' | 'random';
  /** The number of plants in its store at the start. */
  stored?: number;
}

/**
 * Starts a subject, runs a load with each number of connections, and ends it.
 *
 * @throws if it cannot start, or a response is not 200
 */
export async function runTrial(plan: Plan, round: number, durations: Durations): Promise<Measurement[]> {
  const { subject, connections, ids = 'ascending', stored } = plan;
  const { warmUpSeconds, seconds, signal } = durations;
  using folder = newFolder();
  const running = await startSettled(subject, folder.path);
  const of = { subject: subject.name, round, ...(stored !== undefined && { stored }) };
  const measurements: Measurement[] = [];
  // `startServer` has stored one plant.
  let plants = (stored ?? 0) + 1;
  let residentPeakBytes: number;
  let storeBytes: number;
  try {
    plants += (await warmUp(running, warmUpSeconds, signal, ids)).requests;
    for (const count of connections) {
      const { requests, figures } = await measureLoad(running, { connections: count, seconds, ids, signal });
      plants += requests;
      measurements.push({ ...of, connections: count, figures });
    }
    residentPeakBytes = residentBytesOf(running.pid, 'VmHWM');
  } finally {
    storeBytes = await running.stop();
  }
  const figures = { residentPeakBytes };
  measurements.push({
    ...of,
    figures: storeBytes === 0 ? figures : { ...figures, bytesPerPlant: storeBytes / plants },
  });
  return measurements;
}

/**
 * Starts a subject on an idle disk. Otherwise the kernel would write data of the last trial, or of
 * a copied store, during the flushes of this one.
 */
export async function startSettled(subject: Subject, folder: string): Promise<RunningSubject> {
  spawnSync('sync');
  const running = await subject.start(folder);
  spawnSync('sync');
  return running;
}

/** Runs a load before the measurement. */
export async function warmUp(
  running: RunningSubject,
  seconds: number,
  signal: AbortSignal,
  ids: Plan['ids'] = 'ascending',
): Promise<WrkResult> {
  return await create(running, { connections: WARM_UP_CONNECTIONS, seconds, ids, signal });
}

/** Runs a closed loop. @throws if a response is not 200, because errors are not comparable */
async function create(
  { url, token }: RunningSubject,
  settings: Omit<WrkSettings, 'url' | 'token'>,
): Promise<WrkResult> {
  const result = await runWrk({ url, token, ...settings });
  if (result.requests > 0 && result.failures === 0) return result;
  throw new Error(`${result.failures} responses were not 200, with ${settings.connections} connections`);
}

/**
 * Runs a closed loop, and measures the CPU time and the use of a database server for each plant.
 */
export async function measureLoad(
  running: RunningSubject,
  settings: Omit<WrkSettings, 'url' | 'token'>,
): Promise<{ requests: number; figures: Record<string, number> }> {
  const cpuUsBefore = cpuUsOf(running.pid);
  const databaseBefore = await running.databaseUse?.();
  const { requests, ratePerSecond, p50Us, p99Us, maxUs } = await create(running, settings);
  const cpuUs = (cpuUsOf(running.pid) - cpuUsBefore) / requests;
  const databaseAfter = await running.databaseUse?.();
  const figures: Record<string, number> = { ratePerSecond, p50Us, p99Us, maxUs, cpuUs };
  if (databaseBefore !== undefined && databaseAfter !== undefined) {
    figures.databaseCpuUs = (databaseAfter.cpuUs - databaseBefore.cpuUs) / requests;
    figures.databaseLogBytes = (databaseAfter.walBytes - databaseBefore.walBytes) / requests;
  }
  return { requests, figures };
}

/** A folder that is removed at the end of a `using` block. */
export function newFolder(): DisposableTempDir {
  return mkdtempDisposableSync(join(tmpdir(), 'plant-store-bench-'));
}
