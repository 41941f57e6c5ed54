import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A fault, during and after which the service must fulfil its promises. */
export interface Scenario {
  name: string;
  /** One line for people. */
  summary: string;
  /** Requirements of the machine. */
  needs: readonly Need[];
  /** The shortest duration, also if the budget is shorter. */
  secondsMin: number;
  /** The mutants that it must detect; none if it does not check the stored plants. */
  finds: readonly Mutant[];
  run(order: Order): Promise<Result>;
}

/** The settings of a run. */
export interface Order {
  /** The seed of all random decisions. */
  seed: number;
  /**
   * The duration. A scenario ends earlier when it is complete, or when it has detected the mutant.
   */
  budgetMs: number;
  /** The largest number of faults to inject. */
  roundsMax?: number;
  /** Breaks a promise of the service on purpose. The scenario must then find faults. */
  mutant: Mutant | undefined;
  /** Ends the run early. */
  signal: AbortSignal;
  /** Prints progress for people. */
  tell(line: string): void;
}

export interface Result {
  /** One line for each broken promise. */
  faults: string[];
  /** One line for each correct but late result. These neither detect a mutant nor fail a test. */
  late?: string[];
  /** Counts and measurements by name, with the unit. */
  measurements: Record<string, string | number>;
}

/**
 * Modules of `faults/mutants`, loaded before the service. The first two have one for each engine,
 * the last one is for both.
 */
export const MUTANTS = ['synchronous-off', 'respond-before-commit', 'no-checksums'] as const;
export type Mutant = (typeof MUTANTS)[number];

/** Conditions that a machine may not meet, with advice. */
const CONDITIONS = {
  linux: [() => process.platform === 'linux', 'it needs Linux'],
  root: [() => process.getuid?.() === 0, 'it needs root; run it as root, on a test machine'],
  'loop devices': [
    () => existsSync('/dev/loop-control'),
    'there are no loop devices; load the kernel module loop',
  ],
  'network namespaces': [
    canMakeNetwork,
    'network namespaces are not allowed here; run it outside a container',
  ],
} as const;

/** The Debian packages of the programs that scenarios run. */
const PACKAGES = 'gcc libc6-dev mount e2fsprogs xfsprogs iproute2';

/** Conditions, and names of programs. */
export type Need = keyof typeof CONDITIONS | 'gcc' | 'mount' | 'mkfs.ext4' | 'mkfs.xfs' | 'xfs_io' | 'ip';

/** @returns why a scenario cannot run on this machine, with advice; undefined if it can */
export function obstacleOf({ needs }: Scenario): string | undefined {
  for (const need of needs) {
    if (need in CONDITIONS) {
      const [isMet, advice] = CONDITIONS[need as keyof typeof CONDITIONS];
      if (!isMet()) return advice;
    } else if (spawnSync(need, ['-V']).error !== undefined)
      return `${need} is missing; install it (Debian: apt-get install ${PACKAGES})`;
  }
  return undefined;
}

function canMakeNetwork(): boolean {
  const trial = `plants-trial-${process.pid}`;
  const { status } = spawnSync('ip', ['netns', 'add', trial]);
  spawnSync('ip', ['netns', 'del', trial]);
  return status === 0;
}

/** @returns the path of an SQLite store in a new folder, which is removed with `opened` */
export function newSqliteFile(opened: AsyncDisposableStack): string {
  const folder = mkdtempSync(join(tmpdir(), 'plant-store-fault-'));
  opened.defer(() => rmSync(folder, { recursive: true }));
  return join(folder, 'plants.db');
}

/** The median and the maximum of times, as text. */
export function spread(measuredMs: readonly number[]): string {
  if (measuredMs.length === 0) return 'none';
  const sorted = measuredMs.toSorted((a, b) => a - b);
  return `median ${sorted[sorted.length >> 1]!.toFixed(0)} ms, maximum ${sorted.at(-1)!.toFixed(0)} ms`;
}

export function mebibytes(bytes: number): number {
  return Math.round(bytes / 1024 / 1024);
}
