import { DAY_MS } from '../../core/clock.ts';
import { databaseFlag } from '../../engines/openers/database-url.ts';
import type { Disk, StorageEngine } from '../../engines/storage-engine.ts';
import type { CommandRun } from '../../engines/tables/operator-tables.ts';
import { bytesText } from '../../formats/bytes-text.ts';
import { backupFault } from '../health/backup-fault.ts';
import { type KnownDamage, runText } from '../health/known-damage.ts';
import { spaceOf } from '../health/readiness-checks.ts';

/** The rate at which the disk fills is measured over at least this time. */
const DISK_RATE_MIN_MS = 6 * 3_600_000;
/** A disk that is full in fewer days needs attention. */
const DISK_DAYS_MIN = 14;

/** A row of the page: a label, its text, and a time before the text. It is hidden without text. */
export type FactRow = [label: string, text: string | undefined, at?: number];

/** How fast a disk fills. The rate is that of all programs since the start. */
type DiskTrend = { kind: 'unknown' } | { kind: 'stable' } | { kind: 'fills'; days: number };

/** How much attention a fact needs, as the page colors it. */
type State = 'well' | 'warning' | 'damaged';

/** The disk and the last backup. Times are in ms since 1970. */
export interface StoreStatistics {
  disk:
    | { kind: 'external' }
    | { kind: 'unknown' }
    | (Disk & { kind: 'known'; state: State; trend: DiskTrend });
  /** PostgreSQL has backup programs of its own. */
  backup:
    | { kind: 'external' }
    | { kind: 'none'; state: State }
    | { kind: 'run'; state: State; endedAt: number; text: string };
}

/** The parts of the store that operators should know of. */
interface Monitored {
  damage: KnownDamage;
  /** About when the store got its first plant, in ms since 1970; undefined: it had none lately. */
  readonly firstPlantAt: number | undefined;
}

interface ShownStart {
  version: string;
  /** The store, without its password. */
  database: string;
  /** Whether the store did not exist before this start. */
  isFirstStart: boolean;
}

/** The few facts of the service and its store that the console shows first. */
export class StoreFacts {
  readonly #engine: StorageEngine;
  readonly #monitored: Monitored;
  readonly #shown: ShownStart;
  /** Free bytes of the disk at the start, for the rate at which it fills. */
  readonly #start = { at: Date.now(), diskFreeBytes: undefined as number | undefined };

  constructor(engine: StorageEngine, monitored: Monitored, shown: ShownStart) {
    this.#engine = engine;
    this.#monitored = monitored;
    this.#shown = shown;
    void engine.statistics().then(statistics => {
      if (statistics.kind === 'sqlite') this.#start.diskFreeBytes = statistics.disk?.freeBytes;
    });
  }

  /** All facts that operators need often. */
  async rows(): Promise<FactRow[]> {
    const { disk, backup } = await this.statistics();
    const [start, ...others] = this.startAndChecks();
    const backupText =
      backup.kind === 'none' ? `none yet; to make one: ${this.#command('backup FILE')}` : undefined;
    return [
      start!,
      ['Free on the disk', diskText(disk)],
      backup.kind === 'run' ? ['Last backup', backup.text, backup.endedAt] : ['Last backup', backupText],
      ...others,
    ];
  }

  /** The facts that are no statistics. */
  startAndChecks(): FactRow[] {
    const { version, isFirstStart } = this.#shown;
    const start = isFirstStart ? 'the first start on this store, ' : '';
    const { recorded } = this.#monitored.damage;
    const verify = this.#lastRun('verify');
    return [
      ['Started', `${start}version ${version}`, this.#start.at],
      verify === undefined
        ? ['Last verify', `none yet; to check the whole store: ${this.#command('verify')}`]
        : ['Last verify', runText(verify), verify.endedAt],
      recorded === undefined
        ? ['Last damage', undefined]
        : ['Last damage', `found by ${recorded.foundBy}`, recorded.foundAt],
    ];
  }

  async statistics(): Promise<StoreStatistics> {
    const statistics = await this.#engine.statistics();
    if (statistics.kind === 'postgres') return { disk: { kind: 'external' }, backup: { kind: 'external' } };
    return { disk: this.#disk(statistics.disk), backup: this.#backup() };
  }

  #disk(disk: Disk | undefined): StoreStatistics['disk'] {
    if (disk === undefined) return { kind: 'unknown' };
    const trend = this.#trendOf(disk.freeBytes);
    const fillsSoon = trend.kind === 'fills' && trend.days < DISK_DAYS_MIN;
    const state = { enough: fillsSoon ? 'warning' : 'well', low: 'warning', full: 'damaged' } as const;
    return { kind: 'known', ...disk, trend, state: state[spaceOf(disk)] };
  }

  #backup(): StoreStatistics['backup'] {
    const last = this.#lastRun('backup');
    const { damage, firstPlantAt } = this.#monitored;
    const isDue = backupFault({ lastRuns: damage.lastRuns, firstPlantAt }) !== undefined;
    const state = isDue ? 'warning' : 'well';
    if (last === undefined) return { kind: 'none', state };
    const { endedAt, hasSucceeded } = last;
    return { kind: 'run', state: hasSucceeded ? state : 'damaged', endedAt, text: runText(last) };
  }

  #command(text: string): string {
    return `npx plant-store ${text} ${databaseFlag(this.#shown.database)}`;
  }

  #lastRun(command: CommandRun['command']): CommandRun | undefined {
    return this.#monitored.damage.lastRuns.find(each => each.command === command);
  }

  #trendOf(freeBytes: number): DiskTrend {
    const elapsedMs = Date.now() - this.#start.at;
    if (this.#start.diskFreeBytes === undefined || elapsedMs < DISK_RATE_MIN_MS) return { kind: 'unknown' };
    const usedBytes = this.#start.diskFreeBytes - freeBytes;
    if (usedBytes <= 0) return { kind: 'stable' };
    return { kind: 'fills', days: Math.floor(((freeBytes / usedBytes) * elapsedMs) / DAY_MS) };
  }
}

function diskText(disk: StoreStatistics['disk']): string | undefined {
  if (disk.kind === 'external') return undefined;
  return disk.kind === 'unknown' ? 'unknown' : `${bytesText(disk.freeBytes)} of ${bytesText(disk.bytes)}`;
}
