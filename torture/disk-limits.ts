import { execFileSync } from 'node:child_process';
import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { TOKEN_REFRESH_INTERVAL_MS } from '../src/contract/limits.ts';
import { seededRandom } from '../test/harness/seeded-random.ts';
import { FailingCalls } from './failing-calls-library.ts';
import { spread } from './figures.ts';
import { LoopDisk } from './loop-disk.ts';
import type { Ordeal, OrdealOrder, OrdealResult } from './ordeal.ts';
import { lateRecoveries, lateRestarts } from './recovery.ts';
import { ServedStore } from './served-store.ts';

/** On one disk; then what is stored is compared with what clients were told. */
const ROUNDS_PER_DISK = 14;
const SETTLE_MS = TOKEN_REFRESH_INTERVAL_MS + 200;
/** Until then the log has grown so far that it needs room. */
const REFUSAL_MS_MAX = 10_000;
const LASTS_MS_MAX = 400;
/** Two years: beyond all that anything waits for. */
const CLOCK_SECONDS_MAX = 63_000_000;

interface Place {
  disk: LoopDisk;
  store: ServedStore;
  calls: FailingCalls;
}

/** What gets in the way of a service, and goes again. */
interface Trouble {
  name: string;
  begin(place: Place, random: (below: number) => number): void;
  end(place: Place): void;
  /** Whether plants are refused meanwhile; otherwise none may be. */
  refuses: boolean;
}

const TROUBLES: Trouble[] = [
  { name: 'full disk', begin: ({ disk }) => disk.fill(), end: ({ disk }) => disk.makeRoom(), refuses: true },
  {
    name: 'files that cannot grow',
    begin: ({ store }) => limitFileSize(store, '4096:unlimited'),
    end: ({ store }) => limitFileSize(store, 'unlimited:unlimited'),
    refuses: true,
  },
  {
    name: 'folder taken away',
    begin: ({ store }) => renameSync(store.folder, `${store.folder}-away`),
    end: ({ store }) => renameSync(`${store.folder}-away`, store.folder),
    refuses: true,
  },
  {
    name: 'disk that hangs',
    begin: ({ disk }) => disk.setFrozen(true),
    end: ({ disk }) => disk.setFrozen(false),
    refuses: false,
  },
  {
    name: 'clock that steps',
    begin: ({ calls }, random) => calls.setClock(random(2 * CLOCK_SECONDS_MAX) - CLOCK_SECONDS_MAX),
    end: ({ calls }) => calls.setClock(0),
    refuses: false,
  },
];

/**
 * Full disks, limits, files that are taken away and come back, and clocks; and at the end of each disk, which cannot be
 * taken back by the service alone, that it can only be read.
 */
export const diskLimits: Ordeal = {
  name: 'disk-limits',
  summary: 'a disk that is full, hangs, can only be read or is not there, and a clock that steps, on SQLite',
  finds: ['answer-before-commit'],
  obstacle: () =>
    LoopDisk.obstacle(['mount', 'mkfs.ext4', 'fsfreeze', 'fallocate', 'prlimit']) ?? FailingCalls.obstacle(),
  run,
};

async function run({ seed, weakness, signal, tell, budgetMs }: OrdealOrder): Promise<OrdealResult> {
  const untilMs = performance.now() + budgetMs;
  const random = seededRandom(seed);
  const faults: string[] = [];
  const rounds: Record<string, number> = { 'disk that can only be read': 0 };
  const recoveryMs: number[] = [];
  const restartMs: number[] = [];
  const answers = { requests: 0, kept: 0, unknown: 0 };
  const isOver = (): boolean => performance.now() >= untilMs || signal.aborted;
  for (let disks = 1; !isOver(); disks++) {
    using calls = new FailingCalls();
    using disk = new LoopDisk('ext4');
    await using store = await ServedStore.make({ folder: join(disk.folder, 'store'), weakness, calls });
    await store.startUnderLoad(seed + disks);
    for (let round = 0; round < ROUNDS_PER_DISK && !isOver(); round++) {
      const trouble = TROUBLES[random(TROUBLES.length)]!;
      rounds[trouble.name] = (rounds[trouble.name] ?? 0) + 1;
      const { found, backMs } = await suffer(trouble, { disk, store, calls }, random);
      recoveryMs.push(backMs);
      faults.push(...found.map(fault => `disk ${disks}, ${trouble.name}: ${fault}`));
    }
    faults.push(...(await readOnlyEnd(disk, store)).map(fault => `disk ${disks}, ${fault}`));
    rounds['disk that can only be read']!++;
    answers.requests += store.log.length;
    answers.kept += store.kept.length;
    answers.unknown += store.unknown.length;
    restartMs.push(...store.firstKeptAfterMs);
    tell(`${disks} disks, ${answers.requests} requests, ${faults.length} faults`);
  }
  return {
    faults,
    figures: {
      ...{ ...rounds, ...answers },
      'end of the trouble to next 200': spread(recoveryMs, 'ms'),
      'start to first 200': spread(restartMs, 'ms'),
    },
  };
}

async function suffer(
  trouble: Trouble,
  place: Place,
  random: (below: number) => number,
): Promise<{ found: string[]; backMs: number }> {
  const { store } = place;
  const begin = store.log.length;
  const saidBefore = store.timesSaidFailed;
  const met = (status: number): boolean =>
    store.log.slice(begin).some(({ answer }) => answer?.status === status);
  trouble.begin(place, random);
  const refusedInTime = !trouble.refuses || (await isSoon(() => met(503)));
  await wait(random(LASTS_MS_MAX));
  trouble.end(place);
  const backMs = await store.keeps(1);
  // A token that is not known is answered 503 until the service has asked the store for changes again.
  await wait(SETTLE_MS);
  const found = lateRecoveries(backMs);
  if (!refusedInTime) found.push('no plant was refused');
  if (!trouble.refuses && met(503)) found.push('plants were answered 503');
  if (store.log.slice(begin).some(({ answer }) => answer === undefined))
    found.push('requests were not answered');
  if (met(503) && store.timesSaidFailed === saidBefore)
    found.push('plants were answered 503, and the log does not say so');
  return { found, backMs };
}

/** The disk can only be read, until it is mounted anew and the service is started again. */
async function readOnlyEnd(disk: LoopDisk, store: ServedStore): Promise<string[]> {
  const begin = store.log.length;
  const failed = store.timesSaidFailed;
  const cutAt = performance.now();
  disk.makeReadOnly();
  const found: string[] = [];
  if (!(await isSoon(() => store.isRefusing)))
    found.push('no plant was refused on a disk that can only be read');
  else if (store.timesSaidFailed === failed)
    found.push('plants were answered 503 on a disk that can only be read, and the log does not say so');
  await store.stopLoad();
  await store.kill();
  store.forgetAnswersAfter(cutAt);
  disk.powerOn();
  await store.startUnderLoad(begin);
  await store.stopLoad();
  found.push(...lateRestarts(store.firstKeptAfterMs.at(-1)!));
  found.push(...(await store.faults('stored')));
  await store.kill();
  return found;
}

/** @returns whether it has happened within a while that is long for a service under load */
async function isSoon(hasHappened: () => boolean): Promise<boolean> {
  const sinceMs = performance.now();
  while (!hasHappened()) {
    if (performance.now() - sinceMs > REFUSAL_MS_MAX) return false;
    await wait(5);
  }
  return true;
}

/** Of a process that runs, as `ulimit -f` sets it for one that begins. */
function limitFileSize({ serve }: ServedStore, limits: string): void {
  execFileSync('prlimit', ['--pid', String(serve.child.pid), `--fsize=${limits}`]);
}
