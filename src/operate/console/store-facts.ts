import type { Disk, StorageEngine } from '../../engines/storage-engine.ts';
import type { CommandRun } from '../../engines/tables/operator-tables.ts';
import { bytesText } from '../../formats/bytes-text.ts';
import type { KnownDamage } from '../health/known-damage.ts';
import { runText } from '../health/known-damage.ts';

/** The rate at which the disk fills is measured over at least this time. */
const DISK_RATE_MS_MIN = 6 * 3_600_000;
const DAY_MS = 86_400_000;

/** A row of the page: a label, its text, and a time before the text. It is hidden without text. */
export type FactRow = [label: string, text: string | undefined, at?: number];

interface ShownStart {
  version: string;
  /** Whether the store did not exist before this start. */
  isFirstStart: boolean;
}

/** The few facts of the service and its store that the console shows first. */
export class StoreFacts {
  readonly #engine: StorageEngine;
  readonly #damage: KnownDamage;
  readonly #shown: ShownStart;
  /** Free bytes of the disk at the start, for the rate at which it fills. */
  readonly #start = { at: Date.now(), diskFreeBytes: undefined as number | undefined };

  constructor(engine: StorageEngine, damage: KnownDamage, shown: ShownStart) {
    this.#engine = engine;
    this.#damage = damage;
    this.#shown = shown;
    void engine.statistics().then(statistics => {
      if (statistics.kind === 'sqlite') this.#start.diskFreeBytes = statistics.disk?.freeBytes;
    });
  }

  /** The facts that operators need most often. */
  async rows(): Promise<FactRow[]> {
    const { version, isFirstStart } = this.#shown;
    const statistics = await this.#engine.statistics();
    const start = isFirstStart ? 'the first start on this store, ' : '';
    const isOnSqlite = statistics.kind === 'sqlite';
    // PostgreSQL has backup programs of its own.
    const noBackup = isOnSqlite ? 'none yet; npx plant-store backup FILE makes one' : undefined;
    const { recorded } = this.#damage;
    return [
      ['Up since', `${start}version ${version}`, this.#start.at],
      ['Free on the disk', isOnSqlite ? this.#freeText(statistics.disk) : undefined],
      this.#runRow('Last backup', 'backup', noBackup),
      this.#runRow('Last verify', 'verify', 'none yet; npx plant-store verify checks the whole store'),
      recorded === undefined
        ? ['Last damage', undefined]
        : eventRow('Last damage', recorded.foundAt, `found by ${recorded.foundBy}`),
    ];
  }

  /** @param textWithoutRun undefined: without a run, the row is hidden */
  #runRow(label: string, command: CommandRun['command'], textWithoutRun: string | undefined): FactRow {
    const last = this.#damage.lastRuns.find(each => each.command === command);
    return last === undefined ? [label, textWithoutRun] : eventRow(label, last.endedAt, runText(last));
  }

  /** The free space and, after some hours, the days until the disk is full, if it fills. */
  #freeText(disk: Disk | undefined): string {
    if (disk === undefined) return 'unknown';
    const { freeBytes, bytes } = disk;
    const text = `${bytesText(freeBytes)} of ${bytesText(bytes)}`;
    const elapsedMs = Date.now() - this.#start.at;
    if (this.#start.diskFreeBytes === undefined || elapsedMs < DISK_RATE_MS_MIN) return text;
    const usedBytes = this.#start.diskFreeBytes - freeBytes;
    if (usedBytes <= 0) return text;
    const days = Math.floor(((freeBytes / usedBytes) * elapsedMs) / DAY_MS);
    return `${text}; full in ${days < 2 ? 'less than 2 days' : `${days} days`} at the rate of all programs since the start`;
  }
}

function eventRow(label: string, at: number, text: string): FactRow {
  return [label, `${ageText(at)}: ${text}`, at];
}

function ageText(at: number): string {
  const hours = Math.floor((Date.now() - at) / 3_600_000);
  if (hours < 1) return 'less than an hour ago';
  return hours < 48 ? `${hours} h ago` : `${Math.floor(hours / 24)} days ago`;
}
