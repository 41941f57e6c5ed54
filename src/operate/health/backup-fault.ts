import { DAY_MS } from '../../core/clock.ts';
import type { CommandRun } from '../../engines/tables/operator-tables.ts';

/** An older backup is a fault. */
const BACKUP_AGE_DAYS_MAX = 7;
/** A store may have plants for so long without a backup. */
const PLANTS_AGE_DAYS_MAX = 2;

/** What is known of the backups of an SQLite store. PostgreSQL has backup programs of its own. */
interface KnownBackups {
  /** The last noted run of each command. */
  lastRuns: readonly CommandRun[];
  /** About when the store got its first plant, in ms since 1970; undefined: it has none. */
  firstPlantAt: number | undefined;
}

/** @returns what is wrong with the backups of the store, in words; undefined: nothing */
export function backupFault({ lastRuns, firstPlantAt }: KnownBackups): string | undefined {
  const last = lastRuns.find(({ command }) => command === 'backup');
  if (last !== undefined && !last.hasSucceeded) return 'the last backup of the store found a fault';
  const days = daysSince(last?.endedAt ?? firstPlantAt ?? Date.now());
  if (last !== undefined)
    return days > BACKUP_AGE_DAYS_MAX ? `the last backup of the store is ${days} days old` : undefined;
  return days >= PLANTS_AGE_DAYS_MAX ? `the store has had plants for ${days} days, but no backup` : undefined;
}

function daysSince(at: number): number {
  return Math.floor((Date.now() - at) / DAY_MS);
}
