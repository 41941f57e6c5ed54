import { spawnSync } from 'node:child_process';
import { type DisposableTempDir, mkdtempDisposableSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type LoadResult, type LoadSettings, runLoad } from '../test/harness/load.ts';
import { residentBytesOf } from '../test/harness/process-memory.ts';
import type { Measurement } from './measurements.ts';
import { cpuUsOf } from './server-process.ts';
import type { RunningSubject, Subject } from './subjects.ts';

const WARM_UP_CONNECTIONS = 64;

/** How long loads take, how often, and what ends them. */
export interface Durations {
  rounds: number;
  /** Of a load before the first that counts: a runtime compiles what runs often only after some seconds of it. */
  warmUpSeconds: number;
  seconds: number;
  signal: AbortSignal;
}

/** A subject and what it is driven with. */
export interface Plan {
  subject: Subject;
  connections: readonly number[];
  ids?: 'ascending' | 'random';
  /** Plants that its store holds from the start. */
  stored?: number;
}

/**
 * Starts a subject anew, drives it with each number of connections, and ends it.
 *
 * @throws when it cannot be started, or a plant is not answered 200
 */
export async function runTrial(plan: Plan, round: number, durations: Durations): Promise<Measurement[]> {
  const { subject, connections, ids = 'ascending', stored } = plan;
  const { warmUpSeconds, seconds, signal } = durations;
  using folder = newFolder();
  const running = await startSettled(subject, folder.path);
  const of = { subject: subject.name, round, ...(stored !== undefined && { stored }) };
  const measurements: Measurement[] = [];
  // One more found out that it takes plants.
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
  const figures = { startMs: running.startMs, residentPeakBytes };
  measurements.push({
    ...of,
    figures: storeBytes === 0 ? figures : { ...figures, bytesPerPlant: storeBytes / plants },
  });
  return measurements;
}

/**
 * Starts a subject on a disk that has nothing else to do: what the last trial deleted, or the copying of a store left in
 * memory, would otherwise be written while this one waits for its flushes.
 */
export async function startSettled(subject: Subject, folder: string): Promise<RunningSubject> {
  spawnSync('sync');
  const running = await subject.start(folder);
  spawnSync('sync');
  return running;
}

/** A load that does not count. */
export async function warmUp(
  running: RunningSubject,
  seconds: number,
  signal: AbortSignal,
  ids: Plan['ids'] = 'ascending',
): Promise<LoadResult> {
  return await create(running, { connections: WARM_UP_CONNECTIONS, seconds, ids, signal });
}

/** Drives a closed loop. @throws when a plant is not answered 200: the figures would be those of rejections */
async function create(
  { url, token }: RunningSubject,
  settings: Omit<LoadSettings, 'url' | 'token'>,
): Promise<LoadResult> {
  const result = await runLoad({ url, token, ...settings });
  if (result.requests > 0 && result.failures === 0) return result;
  throw new Error(
    `${result.failures} plants were not answered 200, with ${settings.connections} connections`,
  );
}

/** A closed loop, with what it took of the processor and of a database server for each plant. */
export async function measureLoad(
  running: RunningSubject,
  settings: Omit<LoadSettings, 'url' | 'token'>,
): Promise<{ requests: number; figures: Record<string, number> }> {
  const cpuUsBefore = cpuUsOf(running.pid);
  const databaseBefore = await running.databaseUse?.();
  const { requests, ratePerSecond, p50Us, p99Us, maxUs } = await create(running, settings);
  const cpuUs = (cpuUsOf(running.pid) - cpuUsBefore) / requests;
  const databaseAfter = await running.databaseUse?.();
  const figures: Record<string, number> = { ratePerSecond, p50Us, p99Us, maxUs, cpuUs };
  if (databaseBefore !== undefined && databaseAfter !== undefined) {
    figures.databaseCpuUs = (databaseAfter.cpuUs - databaseBefore.cpuUs) / requests;
    figures.databaseLogBytes = (databaseAfter.logBytes - databaseBefore.logBytes) / requests;
  }
  return { requests, figures };
}

/** One that goes with the block that it is used in. */
export function newFolder(): DisposableTempDir {
  return mkdtempDisposableSync(join(tmpdir(), 'plant-store-bench-'));
}
