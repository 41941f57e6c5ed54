import { existsSync } from 'node:fs';
import { StoreDamaged } from '../core/commit/store-errors.ts';
import { type DatabaseAddress, fileBeside } from '../engines/openers/database-url.ts';
import { inExistingStore, openerOf } from '../engines/openers/open-store.ts';
import type { DamageRecord } from '../engines/tables/damage-record.ts';
import type { CommandRun } from '../engines/tables/operator-tables.ts';

/** The name of the seal of a backup is the name of the backup with this suffix. */
export const SEAL_SUFFIX = '.seal';

/** What a command has found out about the store. */
export type Finding =
  /** `repaired` is the damage that the store knew of when the command began. */
  | { kind: 'sound'; repaired?: DamageRecord | undefined }
  /** `fault` is the first one. */
  | { kind: 'damaged'; fault: string };

/** What to store of a command that has ended. */
interface EndedRun {
  command: CommandRun['command'];
  /** Absent if the command has no result, so that the result of the last run stays. */
  result?: string;
  finding: Finding;
  /** Whether the command compared the store with a seal. */
  isCompared?: boolean;
}

/**
 * Stores the end of a command for services and their operators. A backup stays unchanged, unless
 * its known damage is repaired.
 */
export async function noteRun(
  database: DatabaseAddress,
  { command, result, finding, isCompared = false }: EndedRun,
): Promise<void> {
  const { file } = openerOf(database);
  // A database server cannot tell, so a service is assumed.
  const isServed = file === undefined || file.wasServed();
  const endedAt = Date.now();
  try {
    const isUnchangeable = !isServed && isBackup(database, isCompared);
    const repaired = finding.kind === 'sound' ? finding.repaired : undefined;
    if (isUnchangeable && repaired === undefined) return;
    await inExistingStore(database, async ({ operatorTables }) => {
      if (finding.kind === 'damaged')
        await operatorTables.recordDamage({ foundAt: endedAt, foundBy: `${command}: ${finding.fault}` });
      if (repaired !== undefined) await operatorTables.forgetDamage(repaired);
      if (result === undefined) return;
      await operatorTables.recordRun({
        command,
        endedAt,
        hasSucceeded: finding.kind === 'sound',
        result: finding.kind === 'sound' ? result : `${finding.fault}; ${result}`,
      });
    });
  } catch (error) {
    // Services meet this damage themselves.
    if (error instanceof StoreDamaged || !isServed) return;
    const { message } = error as Error;
    console.error(`WARNING: services of this store will not know of this ${command}: ${message}`);
  }
}

/**
 * Whether a store that no service uses is a backup. A seal beside its file shows this, or a
 * comparison with a seal. A restored store counts as its backup until a program writes to it.
 */
function isBackup(database: DatabaseAddress, isCompared: boolean): boolean {
  const seal = fileBeside(database, SEAL_SUFFIX);
  const hasSeal = seal !== undefined && existsSync(seal);
  return hasSeal || (isCompared && openerOf(database).file?.wasOpenedForWriting() === false);
}
