import type { DatabaseAddress } from '../store/database-url.ts';
import { inExistingStore } from '../store/open-store.ts';
import { type CommandRun, FAULTS_FOUND } from '../store/plant-store.ts';
import { wasServed } from '../store/sqlite/serve-lock.ts';

/**
 * Notes the end of a command for services and their operators. A file that no service has used
 * stays as it is.
 *
 * @param result undefined: the command made nothing
 * @param fault the first one; undefined: the command found none
 * @param repaired the damage that the store knew of when the command began, and that is gone
 */
export async function noteRun(
  database: DatabaseAddress,
  command: 'backup' | 'verify',
  result: string | undefined,
  fault: string | undefined,
  repaired?: CommandRun,
): Promise<void> {
  if (database.engine === 'sqlite' && !wasServed(database.path)) return;
  const endedAt = Date.now();
  try {
    await inExistingStore(database, async store => {
      if (fault !== undefined)
        await store.recordRun({ command: 'damage', endedAt, result: `met by ${command}: ${fault}` });
      else if (repaired !== undefined) await store.forgetRun(repaired);
      const text = fault === undefined ? result : `${FAULTS_FOUND}${fault}; ${result}`;
      if (result !== undefined) await store.recordRun({ command, endedAt, result: text! });
    });
  } catch (error) {
    console.error(
      `WARNING: services of this store will not know of this ${command}: ${(error as Error).message}`,
    );
  }
}
