import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { openForWriting } from '../src/store/sqlite/database.ts';
import { type ServeProcess, startServe } from '../test/program.ts';
import type { Costs } from './group-commit-model.ts';
import { runLoad } from './load.ts';
import { cpuUsOf } from './server-process.ts';

/** In a batch of one the commit counts, in a large one each plant. */
const LARGE_BATCH_PLANTS = 256;
const INSERT_SECONDS = 1;
/** Long enough for the writer to fall asleep, as it does where few plants come. */
const PAUSE_MS = 1;
/** Among many nobody sleeps. */
const MANY_CONNECTIONS = 256;
const WAKE_ROUND_TRIPS = 5_000;

/**
 * Measures what a plant costs on this machine, each part by itself: nothing here is fitted to a rate or a latency that
 * the model is to predict.
 *
 * @param folder an empty one, on the disk that is asked about
 */
export async function measureCosts(folder: string, loadSeconds: number): Promise<Costs> {
  const writer = measureWriter(folder);
  const wakeDelayUs = await measureWakeDelay();
  const service = await startServe(`sqlite:${join(folder, 'plants.db')}`);
  try {
    await runLoad({ ...service, connections: MANY_CONNECTIONS, seconds: 1 });
    const alone = await measureCpu(service, 1, loadSeconds);
    const many = await measureCpu(service, MANY_CONNECTIONS, loadSeconds);
    return {
      ...writer,
      mainRequestUs: many.mainUs,
      // For the request, and for the end of its batch.
      mainWakeUs: Math.max(0, alone.mainUs - many.mainUs) / 2,
      clientRequestUs: many.clientUs,
      clientWakeUs: Math.max(0, alone.clientUs - many.clientUs),
      wakeDelayUs,
      cores: availableParallelism(),
    };
  } finally {
    await service.stop('SIGTERM');
  }
}

function measureWriter(
  folder: string,
): Pick<Costs, 'flushUs' | 'flushRowUs' | 'writerBatchUs' | 'writerRowUs' | 'writerWakeUs'> {
  const one = insertBatches(join(folder, 'one.db'), 1);
  const paused = insertBatches(join(folder, 'paused.db'), 1, PAUSE_MS);
  const large = insertBatches(join(folder, 'large.db'), LARGE_BATCH_PLANTS);
  const writerRowUs = (large.cpuUs - one.cpuUs) / (LARGE_BATCH_PLANTS - 1);
  const flushRowUs = Math.max(0, large.sleepUs - one.sleepUs) / (LARGE_BATCH_PLANTS - 1);
  return {
    flushUs: one.sleepUs - flushRowUs,
    flushRowUs,
    writerBatchUs: one.cpuUs - writerRowUs,
    writerRowUs,
    writerWakeUs: Math.max(0, paused.cpuUs - one.cpuUs),
  };
}

/** @returns what a batch takes on the average, checkpoints included */
function insertBatches(path: string, batchPlants: number, pauseMs = 0): { cpuUs: number; sleepUs: number } {
  const database = openForWriting(path);
  // As in the service, whose commits copy no log.
  database.exec('PRAGMA wal_autocheckpoint = 50000');
  const insert = database.prepare(
    `INSERT INTO plant_revision (id, revision, name, tag, recorded_at, recorded_by)
     VALUES (?, 1, ?, 'houseplant', ?, 1) ON CONFLICT DO NOTHING`,
  );
  const nothing = new Int32Array(new SharedArrayBuffer(4));
  const untilMs = performance.now() + INSERT_SECONDS * 1000;
  let id = 1_000_000_000_000_000n;
  let batches = 0;
  let tookUs = 0;
  let cpuUs = 0;
  for (; performance.now() < untilMs; batches++) {
    if (pauseMs > 0) Atomics.wait(nothing, 0, 0, pauseMs);
    const since = { ms: performance.now(), cpu: process.threadCpuUsage() };
    database.exec('BEGIN IMMEDIATE');
    for (let row = 0; row < batchPlants; row++) insert.run(++id, `Monstera deliciosa ${id}`, Date.now());
    database.exec('COMMIT');
    const { user, system } = process.threadCpuUsage(since.cpu);
    cpuUs += user + system;
    tookUs += (performance.now() - since.ms) * 1000;
  }
  database.close();
  return { cpuUs: cpuUs / batches, sleepUs: Math.max(0, tookUs - cpuUs) / batches };
}

/** Two threads wake each other in turn. */
async function measureWakeDelay(): Promise<number> {
  const shared = new Int32Array(new SharedArrayBuffer(4));
  const source = `
    const { workerData: shared } = require('node:worker_threads');
    for (let turn = 0; turn < ${WAKE_ROUND_TRIPS}; turn++) {
      Atomics.wait(shared, 0, 2 * turn);
      Atomics.store(shared, 0, 2 * turn + 2);
      Atomics.notify(shared, 0);
    }`;
  const worker = new Worker(source, { eval: true, workerData: shared });
  const ended = new Promise(resolve => worker.once('exit', resolve));
  await new Promise(resolve => worker.once('online', resolve));
  const sinceMs = performance.now();
  for (let turn = 0; turn < WAKE_ROUND_TRIPS; turn++) {
    Atomics.store(shared, 0, 2 * turn + 1);
    Atomics.notify(shared, 0);
    Atomics.wait(shared, 0, 2 * turn + 1);
  }
  const roundTripUs = ((performance.now() - sinceMs) * 1000) / WAKE_ROUND_TRIPS;
  await ended;
  return roundTripUs / 2;
}

/** @returns µs of CPU for each plant, of the main thread and of the load */
async function measureCpu(
  { url, token, child }: ServeProcess,
  connections: number,
  seconds: number,
): Promise<{ mainUs: number; clientUs: number }> {
  const before = { main: mainThreadCpuUs(child.pid!), client: cpuUsOf(process.pid) };
  const { requests } = await runLoad({ url, token, connections, seconds });
  return {
    mainUs: (mainThreadCpuUs(child.pid!) - before.main) / requests,
    // The load is a child of this process, which does nothing else meanwhile.
    clientUs: (cpuUsOf(process.pid) - before.client) / requests,
  };
}

/** The thread that is named after the process is the main one; the first figure is its ns on a core (sched-stats of the kernel). */
function mainThreadCpuUs(pid: number): number {
  const [onCoreNs] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ');
  return Number(onCoreNs) / 1000;
}
