import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { LoggingClient } from '../test/harness/logging-client.ts';
import { until } from '../test/harness/until.ts';
import { FailingCalls } from './failing-calls-library.ts';
import { LoopDisk } from './loop-disk.ts';
import type { Order, Scenario } from './scenario.ts';
import { type Round, runOnStores, type ServedStore } from './served-store.ts';

const LOAD_MS_MAX = 300;
/** What the service has sent is read by its clients within this time. */
const READ_MS = 10;
/** A service goes on for this long at most on a disk that fails every call. */
const WITHOUT_DISK_MS_MAX = 100;

interface Place {
  disk: LoopDisk;
  calls: FailingCalls;
}

/**
 * Cuts the power of the disk under load: at the same moment as the machine stops, or under a service that goes on and
 * finds that every call fails. Each third time the service is killed first, in the middle of a flush, and the next one
 * is sent again what the first one had not answered: what it finds was written and never flushed.
 */
export const powerCut: Scenario = {
  name: 'power-cut',
  summary: 'the disk (ext4 and xfs) loses its power under load, on SQLite',
  needs: ['linux', 'root', 'loop devices', 'mount', 'mkfs.ext4', 'mkfs.xfs', 'xfs_io', 'gcc'],
  secondsMin: 3,
  // Not a batch that is answered before its commit, which `kills` finds: a flush that has begun ends before the power is cut.
  finds: ['synchronous-off'],
  run: order =>
    runOnStores(order, {
      roundsPerStore: 8,
      async setUp(opened, store) {
        const fileSystem = store % 2 === 1 ? 'ext4' : 'xfs';
        const place = { disk: opened.use(new LoopDisk(fileSystem)), calls: opened.use(new FailingCalls()) };
        const folder = place.disk.folder;
        return {
          store: { database: `sqlite:${join(folder, 'plants.db')}`, env: place.calls.environment(folder) },
          place,
        };
      },
      round: round => cutPower(round, order),
    }),
};

async function cutPower({ store, place, random }: Round<Place>, { mutant }: Order): Promise<string> {
  await wait(random(LOAD_MS_MAX));
  // What is never flushed is not killed in a flush.
  const isKilledFirst = random(3) === 0 && mutant !== 'synchronous-off';
  if (isKilledFirst) await killInFlush(store, place.calls);
  const goesOnMs = random(2) === 0 ? random(WITHOUT_DISK_MS_MAX) : undefined;
  const { child } = store.instance();
  child.kill('SIGSTOP');
  await wait(READ_MS);
  const cutAt = performance.now();
  place.disk.cutPower();
  if (goesOnMs !== undefined) {
    child.kill('SIGCONT');
    await wait(goesOnMs);
  }
  await store.kill();
  // A machine without power answers nothing. A kernel that goes on after the shutdown of its file system tells some flush of
  // the last moment that it was done, though its blocks were never made part of the file.
  for (const request of store.log) {
    if (request.respondedAt > cutAt && request.response?.status === 200) request.response = undefined;
  }
  place.disk.powerOn();
  await store.startUnderLoad();
  return `cuts ${isKilledFirst ? 'after a kill in a flush' : 'under load'}${goesOnMs === undefined ? '' : ', the service goes on'}`;
}

/**
 * Kills the service between a write and its flush, starts another one, and sends again what was not answered, until
 * something turns out to be stored: then nothing was written since the new service began.
 */
async function killInFlush(store: ServedStore, calls: FailingCalls): Promise<void> {
  const begin = store.log.length;
  calls.begin({ call: 'flush', nth: 1, shape: 'stall', error: 'EIO', forGood: true });
  await until('a flush is in flight', () => calls.failed > 0);
  await store.kill();
  calls.end();
  const inDoubt = store.log.slice(begin).filter(({ response }) => response === undefined);
  await store.start();
  const client = new LoggingClient(store.instance().url, store.tokens[0]!, store.log);
  for (const { plant } of inDoubt) {
    const { response } = await client.send(plant);
    if (response?.outcome === 'unchanged') break;
  }
  await client.close();
}
