import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { LoggingClient } from '../test/harness/logging-client.ts';
import { until } from '../test/harness/until.ts';
import { FailingCalls } from './failing-calls-library.ts';
import { LoopDisk } from './loop-disk.ts';
import type { Order, Scenario } from './scenario.ts';
import { type Round, runOnStores, type ServedStore } from './served-store.ts';

const LOAD_MAX_MS = 300;
/** Clients read sent responses within this time. */
const READ_MS = 10;
/** The longest time that the service runs on after the power cut. */
const WITHOUT_DISK_MAX_MS = 100;

interface Place {
  disk: LoopDisk;
  calls: FailingCalls;
}

/**
 * Cuts the power of the disk under load. The service stops at the same moment, or it runs on while
 * every call fails. In a third of the rounds the service is killed first, during a flush. Its
 * successor receives the unconfirmed plants again, and finds data that was written and never
 * flushed.
 */
export const powerCut: Scenario = {
  name: 'power-cut',
  summary: 'the disk (ext4 and xfs) loses its power under load, on SQLite',
  needs: ['linux', 'root', 'loop devices', 'mount', 'mkfs.ext4', 'mkfs.xfs', 'xfs_io', 'gcc'],
  secondsMin: 3,
  // Not respond-before-commit, which `kills` finds: here a flush in progress ends before the power
  // cut.
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
  await wait(random(LOAD_MAX_MS));
  // The mutant synchronous-off has no flush in which to kill it.
  const isKilledFirst = random(3) === 0 && mutant !== 'synchronous-off';
  if (isKilledFirst) await killInFlush(store, place.calls);
  const runsOnMs = random(2) === 0 ? random(WITHOUT_DISK_MAX_MS) : undefined;
  const { child } = store.instance();
  child.kill('SIGSTOP');
  await wait(READ_MS);
  const cutAt = performance.now();
  place.disk.cutPower();
  if (runsOnMs !== undefined) {
    child.kill('SIGCONT');
    await wait(runsOnMs);
  }
  await store.kill();
  // A machine without power sends no responses. But after the shutdown of a file system the kernel
  // can confirm a flush whose blocks are not part of the file.
  for (const request of store.log) {
    const { respondedAt, response } = request;
    // A 412 names a revision that may not be on the disk.
    if (respondedAt > cutAt && [200, 412].includes(response?.status ?? 0)) request.response = undefined;
  }
  place.disk.powerOn();
  await store.startUnderLoad();
  return `cuts ${isKilledFirst ? 'after a kill in a flush' : 'under load'}${runsOnMs === undefined ? '' : ', the service runs on'}`;
}

/**
 * Kills the service between a write and its flush, and starts another one. Then sends plants
 * without a response again until one is `unchanged`: so the new service has read it, and not
 * written it.
 */
async function killInFlush(store: ServedStore, calls: FailingCalls): Promise<void> {
  const begin = store.log.length;
  calls.begin({ call: 'flush', nth: 1, shape: 'stall', error: 'EIO', permanent: true });
  await until('a flush is in flight', () => calls.failed > 0);
  await store.kill();
  calls.end();
  const unconfirmed = store.log.slice(begin).filter(({ response }) => response === undefined);
  await store.start();
  const client = new LoggingClient(store.instance().url, store.tokens[0]!, store.log);
  for (const { plant } of unconfirmed) {
    const { response } = await client.send(plant);
    if (response?.outcome === 'unchanged') break;
  }
  await client.close();
}
