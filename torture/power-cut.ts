import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { LoggingClient } from '../test/harness/logging-client.ts';
import { seededRandom } from '../test/harness/seeded-random.ts';
import { until } from '../test/harness/until.ts';
import { FailingCalls } from './failing-calls-library.ts';
import { spread } from './figures.ts';
import { type FileSystem, LoopDisk } from './loop-disk.ts';
import type { Ordeal, OrdealOrder, OrdealResult } from './ordeal.ts';
import { lateRestarts } from './recovery.ts';
import { ServedStore } from './served-store.ts';

/** Of one disk, before a new one of the other kind follows. */
const CUTS_PER_DISK = 8;
const LOAD_MS_MAX = 300;
/** What the service has sent is read by its clients within this time. */
const READ_MS = 10;
/** A service goes on for this long at most on a disk that fails every call. */
const WITHOUT_DISK_MS_MAX = 100;

/**
 * Cuts the power of the disk under load: at the same moment as the machine stops, or under a service that goes on and
 * finds that every call fails. Each third time the service is killed first, in the middle of a flush, and the next one
 * is sent again what the first one had not answered: what it finds was written and never flushed.
 */
export const powerCut: Ordeal = {
  name: 'power-cut',
  summary: 'the disk (ext4 and xfs) loses its power under load, on SQLite',
  finds: ['synchronous-off', 'answer-before-commit'],
  obstacle: () => LoopDisk.obstacle(['mount', 'mkfs.ext4', 'mkfs.xfs', 'xfs_io']) ?? FailingCalls.obstacle(),
  run,
};

async function run(order: OrdealOrder): Promise<OrdealResult> {
  const { seed, signal, tell } = order;
  const untilMs = performance.now() + order.budgetMs;
  const random = seededRandom(seed);
  const faults: string[] = [];
  const restartMs: number[] = [];
  const cuts = { ext4: 0, xfs: 0 };
  const counts = { 'after a kill in a flush': 0, 'under a service that goes on': 0 };
  const answers = { requests: 0, kept: 0, unknown: 0 };
  const isOver = (): boolean => performance.now() >= untilMs || signal.aborted;
  using calls = new FailingCalls();
  for (let fileSystem: FileSystem = 'ext4'; !isOver(); fileSystem = fileSystem === 'ext4' ? 'xfs' : 'ext4') {
    using disk = new LoopDisk(fileSystem);
    const folder = join(disk.folder, 'store');
    const { weakness } = order;
    await using store = await ServedStore.make({ folder, weakness, calls });
    for (let round = 0; round < CUTS_PER_DISK && !isOver(); round++) {
      const when = `cut ${++cuts[fileSystem]} of ${fileSystem}`;
      await store.startUnderLoad(seed + cuts.ext4 + cuts.xfs);
      await wait(random(LOAD_MS_MAX));
      // What is never flushed is not killed in a flush.
      if (random(3) === 0 && weakness !== 'synchronous-off') {
        await killInFlush(store, calls);
        counts['after a kill in a flush']++;
      }
      const goesOn = random(2) === 0;
      if (goesOn) counts['under a service that goes on']++;
      const found = await cutPower(store, disk, goesOn ? random(WITHOUT_DISK_MS_MAX) : undefined);
      found.push(...(await store.faults('stored')));
      faults.push(...found.map(fault => `${when}: ${fault}`));
      // What is broken stays so: whatever else was found on it would say nothing.
      if (found.length > 0) break;
    }
    answers.requests += store.log.length;
    answers.kept += store.kept.length;
    answers.unknown += store.unknown.length;
    restartMs.push(...store.firstKeptAfterMs);
    tell(
      `${cuts.ext4} cuts of ext4, ${cuts.xfs} of xfs, ${answers.requests} requests, ${faults.length} faults`,
    );
  }
  faults.push(...lateRestarts(...restartMs));
  return {
    faults,
    figures: {
      ...{ 'cuts of ext4': cuts.ext4, 'cuts of xfs': cuts.xfs, ...counts, ...answers },
      'start to first 200': spread(restartMs, 'ms'),
    },
  };
}

/**
 * Stops the service together with the disk.
 *
 * @param goesOnMs how long it then goes on without the disk; it stays stopped when this is not given
 * @returns what was wrong with its log
 */
async function cutPower(store: ServedStore, disk: LoopDisk, goesOnMs?: number): Promise<string[]> {
  const { child } = store.serve;
  child.kill('SIGSTOP');
  await wait(READ_MS);
  const cutAt = performance.now();
  disk.cutPower();
  const found: string[] = [];
  if (goesOnMs !== undefined) {
    const failed = store.timesSaidFailed;
    child.kill('SIGCONT');
    await wait(goesOnMs);
    if (store.isRefusing && store.timesSaidFailed === failed)
      found.push('plants were answered 503, and the log does not say so');
  }
  await store.kill();
  store.forgetAnswersAfter(cutAt);
  disk.powerOn();
  return found;
}

/**
 * Kills the service between a write and its flush, starts another one, and sends again what was not answered, until
 * something turns out to be stored: then nothing was written since the new service began.
 */
async function killInFlush(store: ServedStore, calls: FailingCalls): Promise<void> {
  const begin = store.log.length;
  calls.begin({ call: 'flush', nth: 1, shape: 'stall', error: 'EIO', forGood: true });
  await until('a flush is under way', () => calls.failed > 0);
  await store.kill();
  calls.end();
  await store.start();
  const inDoubt = store.log.slice(begin).filter(({ answer }) => answer === undefined);
  const client = new LoggingClient(store.url, store.token, store.log);
  for (const { plant } of inDoubt) {
    const { answer } = await client.send(plant);
    if (answer?.outcome === 'unchanged') break;
  }
  await client.close();
}
