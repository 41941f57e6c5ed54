import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { until } from '../test/harness/until.ts';
import { FailingCalls } from './failing-calls-library.ts';
import { LoopDisk } from './loop-disk.ts';
import type { Scenario } from './scenario.ts';
import { type Round, runOnStores } from './served-store.ts';

const LASTS_MS_MAX = 400;
/** A token that is not known is answered 503 until the service has asked the store for changes again. */
const SETTLE_MS = 1_200;
/** Two years: beyond all that anything waits for. */
const CLOCK_SECONDS_MAX = 63_000_000;

interface Place {
  disk: LoopDisk;
  calls: FailingCalls;
}

/** What gets in the way of a service, and goes again. */
interface Trouble {
  name: string;
  begin(round: Round<Place>): void;
  end(place: Place): void;
  /** Whether plants are answered 503 meanwhile; otherwise none may be. */
  rejects: boolean;
}

const TROUBLES: readonly Trouble[] = [
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

/** Every fourth time the disk can only be read; that is over when it is mounted anew, and the service started again. */
const READ_ONLY_EVERY = 4;

export const diskLimits: Scenario = {
  name: 'disk-limits',
  summary: 'a disk that is full, hangs or can only be read, and a clock that steps, on SQLite',
  needs: ['linux', 'root', 'loop devices', 'mount', 'mkfs.ext4', 'fsfreeze', 'fallocate', 'gcc'],
  secondsMin: 5,
  finds: ['answer-before-commit'],
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
          : suffer(round, TROUBLES[round.number % READ_ONLY_EVERY]!),
    }),
};

async function suffer(round: Round<Place>, { name, begin, end, rejects }: Trouble): Promise<string> {
  const { store, place, random } = round;
  const since = store.log.length;
  begin(round);
  if (rejects) await until('a plant is refused', () => store.statusesFrom(since).includes(503));
  await wait(random(LASTS_MS_MAX));
  end(place);
  await store.recovered();
  await wait(SETTLE_MS);
  const statuses = store.statusesFrom(since);
  if (!rejects && statuses.includes(503)) store.faults.push(`${name}: plants were answered 503`);
  if (statuses.includes(undefined)) store.faults.push(`${name}: requests were not answered`);
  return name;
}

async function makeReadOnly({ store, place: { disk } }: Round<Place>): Promise<string> {
  const since = store.log.length;
  disk.makeReadOnly();
  const madeAt = performance.now();
  await until('a plant is refused', () => store.statusesFrom(since).includes(503));
  await store.kill();
  // As behind a power cut: what the kernel confirmed while it gave up the journal is not on the disk.
  for (const request of store.log) {
    if (request.respondedAt > madeAt && request.response?.status === 200) request.response = undefined;
  }
  disk.powerOn();
  await store.startUnderLoad();
  return 'disk that can only be read';
}
