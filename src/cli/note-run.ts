import type { DatabaseAddress } from '../store/database-url.ts';
import { inExistingStore } from '../store/open-store.ts';
import type { CommandRun } from '../store/plant-store.ts';
import { wasServed } from '../store/sqlite/serve-lock.ts';

/** Notes the end of a command for the console. A file that no service has used stays as it is. */
export async function noteRun(
  database: DatabaseAddress,
  command: CommandRun['command'],
  result: string,
): Promise<void> {
  if (database.engine === 'sqlite' && !wasServed(database.path)) return;
  try {
    await inExistingStore(database, store => store.recordRun({ command, endedAt: Date.now(), result }));
  } catch (error) {
    console.error(`WARNING: the console will not show this ${command}: ${(error as Error).message}`);
  }
}
