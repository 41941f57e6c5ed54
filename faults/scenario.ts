import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Something that the service must survive with every promise kept. */
export interface Scenario {
  name: string;
  /** What it does, in one line. */
  summary: string;
  /** What it needs of the machine. */
  needs: readonly Need[];
  /** It takes at least this long, however little time it is given. */
  secondsMin: number;
  /** The weaknesses that it must find; none where it is about something else than what is stored. */
  finds: readonly Mutant[];
  run(order: Order): Promise<Result>;
}

/** What a scenario is told. */
export interface Order {
  /** Everything drawn at random comes from it, so that the same seed gives the same faults again. */
  seed: number;
  /** How long it goes on; it ends earlier when it has nothing left to do, or when it is weakened and found a fault. */
  budgetMs: number;
  /** At most so many faults are injected. */
  roundsMax?: number;
  /** A module that is loaded before the service and breaks one of its promises; the scenario must then find faults. */
  mutant: Mutant | undefined;
  /** Ends it early. */
  signal: AbortSignal;
  /** Tells a person how far it has come. */
  tell(line: string): void;
}

export interface Result {
  /** Each promise that was broken, a line each; none when all were kept. */
  faults: string[];
  /** What was right and came too late, a line each, apart from the faults: a weakness is not found by it, nor by a test. */
  late?: string[];
  /** What was counted and measured, by name with its unit. */
  figures: Record<string, string | number>;
}

/**
 * The first two are modules of `faults/weakness`, one for each engine, of which the right one is loaded before the service.
 * `cut-connections` is a gateway in front of the service (`faults/common-clients.ts`).
 */
export const MUTANTS = ['synchronous-off', 'answer-before-commit', 'cut-connections'] as const;
export type Mutant = (typeof MUTANTS)[number];

/** What a machine may lack, and what to do about that. */
const CONDITIONS = {
  linux: [() => process.platform === 'linux', 'it takes Linux; run it there'],
  root: [() => process.getuid?.() === 0, 'it takes root; run it as root, on a machine for trials'],
  'loop devices': [
    () => existsSync('/dev/loop-control'),
    'there are no loop devices; load the kernel module loop',
  ],
  'network namespaces': [
    canMakeNetwork,
    'network namespaces are not allowed here; run it outside a container',
  ],
} as const;

/** Programs, and the Debian package that each is in. */
const PACKAGES = {
  gcc: 'gcc libc6-dev',
  mount: 'mount',
  fsfreeze: 'util-linux',
  fallocate: 'util-linux',
  'mkfs.ext4': 'e2fsprogs',
  'mkfs.xfs': 'xfsprogs',
  xfs_io: 'xfsprogs',
  ip: 'iproute2',
} as const;

export type Need = keyof typeof CONDITIONS | keyof typeof PACKAGES;

/** @returns why a scenario cannot run on this machine, and what to do about that; undefined where it can */
export function obstacleOf({ needs }: Scenario): string | undefined {
  for (const need of needs) {
    if (need in CONDITIONS) {
      const [isMet, advice] = CONDITIONS[need as keyof typeof CONDITIONS];
      if (!isMet()) return advice;
    } else if (spawnSync(need, ['-V']).error !== undefined)
      return `${need} is missing; install it (Debian: apt-get install ${PACKAGES[need as keyof typeof PACKAGES]})`;
  }
  return undefined;
}

function canMakeNetwork(): boolean {
  const trial = `plants-trial-${process.pid}`;
  const { status } = spawnSync('ip', ['netns', 'add', trial]);
  spawnSync('ip', ['netns', 'del', trial]);
  return status === 0;
}

/** @returns the path of a SQLite store in a folder of its own, which is removed when `opened` is closed */
export function newSqliteFile(opened: AsyncDisposableStack): string {
  const folder = mkdtempSync(join(tmpdir(), 'plant-store-fault-'));
  opened.defer(() => rmSync(folder, { recursive: true }));
  return join(folder, 'plants.db');
}

/** Median and greatest of what was measured in ms, as a scenario prints it. */
export function spread(measuredMs: readonly number[]): string {
  if (measuredMs.length === 0) return 'none';
  const sorted = measuredMs.toSorted((a, b) => a - b);
  return `median ${sorted[sorted.length >> 1]!.toFixed(0)} ms, most ${sorted.at(-1)!.toFixed(0)} ms`;
}

export function mebibytes(bytes: number): number {
  return Math.round(bytes / 1024 / 1024);
}
