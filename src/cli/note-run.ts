import type { DatabaseAddress } from '../store/database-url.ts';
import type { CommandRun } from '../store/plant-store.ts';
import { wasServed } from '../store/sqlite/serve-lock.ts';
import { inExistingStore } from './existing-store.ts';

/**
 * Notes for the console that a command ended now. A failure is only a warning. A store on SQLite
 * that no service has used may be a backup. It stays as it is.
 */
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
