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
const BACKUP_NOTE =
  'For FILE, write the name of a new file, best on another disk, such as /media/usb/plants-january.db. Each backup needs a new name.';

/** A row of the page. It is hidden without text. */
export interface FactRow {
  label: string;
  text: string | undefined;
  /** A time before the text, in ms since 1970. */
  at?: number;
  /** What the operator can do about it. */
  advice?: { text: string; command: string; note?: string };
}

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
    return [start!, { label: 'Free on the disk', text: diskText(disk) }, this.#backupRow(backup), ...others];
  }

  /** The facts that are no statistics. */
  startAndChecks(): FactRow[] {
    const { version, isFirstStart } = this.#shown;
    const start = isFirstStart ? 'the first start on this store, ' : '';
    const { recorded } = this.#monitored.damage;
    const verify = this.#lastRun('verify');
    const rows: FactRow[] = [
      { label: 'Started', text: `${start}version ${version}`, at: this.#start.at },
      verify === undefined
        ? {
            label: 'Last verify',
            text: 'none yet',
            advice: { text: 'To check the whole store, run:', command: this.#command('verify') },
          }
        : { label: 'Last verify', text: runText(verify), at: verify.endedAt },
    ];
    if (recorded !== undefined)
      rows.push({ label: 'Last damage', text: `found by ${recorded.foundBy}`, at: recorded.foundAt });
    return rows;
  }

  #backupRow(backup: StoreStatistics['backup']): FactRow {
    const label = 'Last backup';
    if (backup.kind === 'external') return { label, text: undefined };
    if (backup.kind === 'run') return { label, text: backup.text, at: backup.endedAt };
    return {
      label,
      text: 'none yet',
      advice: { text: 'To make one, run:', command: this.#command('backup FILE'), note: BACKUP_NOTE },
    };
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
    // The page colors a missing backup at once. The warning of readiness waits for some days.
    if (last === undefined) return { kind: 'none', state: firstPlantAt === undefined ? 'well' : 'warning' };
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
