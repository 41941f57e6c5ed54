import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import type { PlantWrite } from '../src/store/plant-store.ts';
import { SqliteEngine } from '../src/store/sqlite/sqlite-engine.ts';
import { runLoad } from '../test/harness/load.ts';
import { type ServeProcess, startServe } from '../test/harness/program.ts';
import { cpuUsOf } from '../test/harness/server-process.ts';
import type { Costs } from './group-commit-model.ts';

/** In a batch of one the commit counts, in a large one each plant. */
const LARGE_BATCH_PLANTS = 256;
const BATCHES_SECONDS = 1;
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
  const { mainUs: mainAloneUs, ...writer } = await measureBatches(folder);
  const wakeDelayUs = await measureWakeDelay();
  const service = await startServe(`sqlite:${join(folder, 'plants.db')}`);
  try {
    await runLoad({ ...service, connections: MANY_CONNECTIONS, seconds: 1 });
    const alone = await measureCpu(service, 1, loadSeconds);
    const many = await measureCpu(service, MANY_CONNECTIONS, loadSeconds);
    // A lone request wakes the main thread twice, for itself and for the end of its batch; a lone batch once.
    const mainWakeUs = Math.min(Math.max(0, alone.mainUs - many.mainUs - mainAloneUs), mainAloneUs);
    return {
      ...writer,
      // Waking is not part of the time that the writer sleeps for the disk.
      flushUs: Math.max(0, writer.flushUs - 2 * wakeDelayUs),
      mainRequestUs: many.mainUs,
      mainBatchUs: mainAloneUs - mainWakeUs,
      mainWakeUs,
      clientRequestUs: many.clientUs,
      clientWakeUs: Math.max(0, alone.clientUs - many.clientUs),
      wakeDelayUs,
      cores: availableParallelism(),
    };
  } finally {
    await service.stop('SIGTERM');
  }
}

/** Of a batch, on the average, checkpoints included: CPU of the main thread and of the writer, and time without either. */
interface BatchCosts {
  mainUs: number;
  writerUs: number;
  sleepUs: number;
}

/** Batches through the engine itself, one after the other, with nothing else for the main thread to do. */
async function measureBatches(folder: string): Promise<
  Pick<Costs, 'flushUs' | 'flushRowUs' | 'writerBatchUs' | 'writerRowUs' | 'writerWakeUs'> & {
    mainUs: number;
  }
> {
  const engine = await SqliteEngine.open({ path: join(folder, 'batches.db'), repeatedIdRule: 'revise' });
  try {
    await commitBatches(engine, 1);
    const one = await commitBatches(engine, 1);
    const paused = await commitBatches(engine, 1, PAUSE_MS);
    const large = await commitBatches(engine, LARGE_BATCH_PLANTS);
    const writerRowUs = (large.writerUs - one.writerUs) / (LARGE_BATCH_PLANTS - 1);
    const flushRowUs = Math.max(0, large.sleepUs - one.sleepUs) / (LARGE_BATCH_PLANTS - 1);
    return {
      flushUs: one.sleepUs - flushRowUs,
      flushRowUs,
      writerBatchUs: one.writerUs - writerRowUs,
      writerRowUs,
      writerWakeUs: Math.max(0, paused.writerUs - one.writerUs),
      mainUs: one.mainUs,
    };
  } finally {
    await engine.close();
  }
}

async function commitBatches(engine: SqliteEngine, batchPlants: number, pauseMs = 0): Promise<BatchCosts> {
  const untilMs = performance.now() + BATCHES_SECONDS * 1000;
  let batches = 0;
  let tookUs = 0;
  let mainUs = 0;
  let allUs = 0;
  for (; performance.now() < untilMs; batches++) {
    if (pauseMs > 0) await wait(pauseMs);
    const writes = Array.from({ length: batchPlants }, () => nextWrite());
    const since = { ms: performance.now(), main: process.threadCpuUsage(), all: process.cpuUsage() };
    await engine.commit(writes);
    tookUs += (performance.now() - since.ms) * 1000;
    mainUs += sumOf(process.threadCpuUsage(since.main));
    allUs += sumOf(process.cpuUsage(since.all));
  }
  return {
    mainUs: mainUs / batches,
    writerUs: (allUs - mainUs) / batches,
    sleepUs: Math.max(0, tookUs - allUs) / batches,
  };
}

let lastId = 1_000_000_000_000_000n;

function nextWrite(): PlantWrite {
  const id = ++lastId;
  return { plant: { id, name: `Monstera deliciosa ${id}`, tag: 'houseplant' }, recordedBy: 1 };
}

function sumOf({ user, system }: NodeJS.CpuUsage): number {
  return user + system;
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
