import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { until } from '../test/harness/until.ts';
import { FailingCalls } from './failing-calls-library.ts';
import { LoopDisk } from './loop-disk.ts';
import type { Scenario } from './scenario.ts';
import { type Round, runOnStores } from './served-store.ts';

const LASTS_MS_MAX = 400;
/**
 * After a fault, unknown tokens get a 503 until the service has read the changes of tokens again.
 */
const SETTLE_MS = 1_200;
/** Two years: longer than any timeout. */
const CLOCK_SECONDS_MAX = 63_000_000;

interface Place {
  disk: LoopDisk;
  calls: FailingCalls;
}

/** A fault that begins and ends while the service runs. */
interface DiskFault {
  name: string;
  begin(round: Round<Place>): void;
  end(place: Place): void;
  /** Whether the service responds with 503 during the fault. If false, it must not. */
  rejects: boolean;
}

const DISK_FAULTS: readonly DiskFault[] = [
  {
    name: 'full disk',
    begin: ({ place }) => place.disk.fill(),
    end: ({ disk }) => disk.makeRoom(),
    rejects: true,
  },
  {
    name: 'disk that hangs',
    begin: ({ place }) => place.disk.setFrozen(true),
    end: ({ disk }) => disk.setFrozen(false),
    rejects: false,
  },
  {
    name: 'clock that steps',
    begin: ({ place, random }) => place.calls.setClock(random(2 * CLOCK_SECONDS_MAX) - CLOCK_SECONDS_MAX),
    end: ({ calls }) => calls.setClock(0),
    rejects: false,
  },
];

/** Each fourth fault makes the disk read-only, until a new mount and a restart of the service. */
const READ_ONLY_EVERY = 4;

export const diskLimits: Scenario = {
  name: 'disk-limits',
  summary: 'a disk that is full, hangs or is read-only, and a clock that steps, on SQLite',
  needs: ['linux', 'root', 'loop devices', 'mount', 'mkfs.ext4', 'fsfreeze', 'fallocate', 'gcc'],
  secondsMin: 5,
  finds: ['respond-before-commit'],
  run: order =>
    runOnStores(order, {
      roundsPerStore: 12,
      async setUp(opened) {
        const place = { disk: opened.use(new LoopDisk('ext4')), calls: opened.use(new FailingCalls()) };
        const { folder } = place.disk;
        return {
          store: { database: `sqlite:${join(folder, 'plants.db')}`, env: place.calls.environment(folder) },
          place,
        };
      },
      round: round =>
        round.number % READ_ONLY_EVERY === READ_ONLY_EVERY - 1
          ? makeReadOnly(round)
          : injectFault(round, DISK_FAULTS[round.number % READ_ONLY_EVERY]!),
    }),
};

async function injectFault(round: Round<Place>, { name, begin, end, rejects }: DiskFault): Promise<string> {
  const { store, place, random } = round;
  const since = store.log.length;
  begin(round);
  if (rejects) await until('a plant is rejected', () => store.statusesFrom(since).includes(503));
  await wait(random(LASTS_MS_MAX));
  end(place);
  await store.recovered();
  await wait(SETTLE_MS);
  const statuses = store.statusesFrom(since);
  if (!rejects && statuses.includes(503)) store.faults.push(`${name}: responses were 503`);
  if (statuses.includes(undefined)) store.faults.push(`${name}: requests had no response`);
  return name;
}

async function makeReadOnly({ store, place: { disk } }: Round<Place>): Promise<string> {
  const since = store.log.length;
  disk.makeReadOnly();
  const madeAt = performance.now();
  await until('a plant is rejected', () => store.statusesFrom(since).includes(503));
  await store.kill();
  // Like after a power cut: flushes that the kernel confirmed during the abort may not be on the
  // disk.
  for (const request of store.log) {
    if (request.respondedAt > madeAt && request.response?.status === 200) request.response = undefined;
  }
  disk.powerOn();
  await store.startUnderLoad();
  return 'read-only disk';
}
