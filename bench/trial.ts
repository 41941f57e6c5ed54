import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runLoad, runOpenLoop } from '../test/harness/load.ts';
import { startProgram } from '../test/harness/program.ts';
import type { Drive, Durations, OpenLoop, Results, Trial } from './results.ts';
import { plantStoreOnSqlite, type RunningSubject, type Subject } from './subjects.ts';

const WARM_UP_CONNECTIONS = 64;

/** A subject and what it is driven with. */
export interface Plan {
  subject: Subject;
  ids: 'ascending' | 'random';
  connections: readonly number[];
  /** That its store holds from the start. */
  storedPlants: number;
}

/**
 * Starts a subject anew, drives it with each number of connections, and ends it.
 *
 * @param signal ends it early
 * @throws when it cannot be started or driven
 */
export async function runTrial(
  { subject, ids, connections, storedPlants }: Plan,
  round: number,
  { warmUpSeconds, seconds }: Durations,
  signal: AbortSignal,
): Promise<Trial> {
  return await inNewFolder(async folder => {
    const running = await startSettled(subject, folder);
    const drives: Drive[] = [];
    // One more found out that it takes plants.
    let plants = storedPlants + 1;
    let residentPeakBytes: number;
    try {
      plants += await warmUp(running, ids, warmUpSeconds);
      for (const count of connections) {
        signal.throwIfAborted();
        const result = await drive(running, ids, count, seconds);
        plants += result.requests;
        drives.push(result);
      }
      residentPeakBytes = running.residentPeakBytes();
    } finally {
      await running.stop();
    }
    const storeBytes = running.storeBytes();
    const { name, kind, note } = subject;
    return {
      ...{ round, subject: name, kind, ids, startMs: running.startMs, residentPeakBytes, drives },
      ...(note !== undefined && { note }),
      ...(storeBytes !== undefined && { bytesPerPlant: storeBytes / plants }),
    };
  });
}

/** Starts a subject, sends plants at a fixed rate, and ends it. @throws when it cannot be started or driven */
export async function runOpenLoopTrial(
  { subject, ids }: Plan,
  round: number,
  settings: Durations & { connections: number; ratePerSecond: number },
): Promise<OpenLoop> {
  return await inNewFolder(async folder => {
    const running = await startSettled(subject, folder);
    const { url, token } = running;
    try {
      await warmUp(running, ids, settings.warmUpSeconds);
      const { seconds, connections, ratePerSecond } = settings;
      const result = await runOpenLoop({ url, token, ids, seconds, connections, ratePerSecond });
      return { round, subject: subject.name, connections, dueRatePerSecond: ratePerSecond, ...result };
    } finally {
      await running.stop();
    }
  });
}

/**
 * Imports a file through a service that has warmed up; the time is that of the whole command.
 *
 * @throws when the import does not take every row
 */
export async function runImport(
  file: string,
  rows: number,
  round: number,
  warmUpSeconds: number,
): Promise<Results['imports'][number]> {
  return await inNewFolder(async folder => {
    const running = await startSettled(plantStoreOnSqlite(), folder);
    try {
      await warmUp(running, 'ascending', warmUpSeconds);
      const sinceMs = performance.now();
      const child = startProgram(['import', '--url', running.url, '--token', running.token, file], {
        cwd: folder,
      });
      let talk = '';
      child.stderr!.setEncoding('utf8').on('data', text => (talk += text));
      child.stdout!.resume();
      const [exitCode] = await once(child, 'close');
      if (exitCode !== 0) throw new Error(`import ended with ${exitCode}: ${talk}`);
      return { round, rows, rowsPerSecond: (rows * 1000) / (performance.now() - sinceMs) };
    } finally {
      await running.stop();
    }
  });
}

/**
 * Starts a subject on a disk that has nothing else to do: what the last trial deleted, or the copying of a store left in
 * memory, would otherwise be written while this one waits for its flushes.
 */
async function startSettled(subject: Subject, folder: string): Promise<RunningSubject> {
  spawnSync('sync');
  const running = await subject.start(folder);
  spawnSync('sync');
  return running;
}

/** Gives a new folder to what is run, and removes it. */
export async function inNewFolder<Result>(run: (folder: string) => Promise<Result>): Promise<Result> {
  const folder = mkdtempSync(join(tmpdir(), 'plant-store-bench-'));
  try {
    return await run(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function warmUp({ url, token }: RunningSubject, ids: Plan['ids'], seconds: number): Promise<number> {
  return (await runLoad({ url, token, ids, connections: WARM_UP_CONNECTIONS, seconds })).requests;
}

async function drive(
  running: RunningSubject,
  ids: Plan['ids'],
  connections: number,
  seconds: number,
): Promise<Drive> {
  const { url, token } = running;
  const cpuUsBefore = running.cpuUs();
  const databaseBefore = await running.databaseUse?.();
  const result = await runLoad({ url, token, ids, connections, seconds });
  const databaseAfter = await running.databaseUse?.();
  if (result.requests === 0) throw new Error(`nothing was answered with ${connections} connections`);
  return {
    ...result,
    connections,
    cpuUs: (running.cpuUs() - cpuUsBefore) / result.requests,
    residentBytes: running.residentBytes(),
    ...(databaseBefore !== undefined &&
      databaseAfter !== undefined && {
        databaseCpuUs: (databaseAfter.cpuUs - databaseBefore.cpuUs) / result.requests,
        databaseLogBytes: (databaseAfter.logBytes - databaseBefore.logBytes) / result.requests,
      }),
  };
}
