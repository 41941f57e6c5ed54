import { databaseAddressOf } from '../store/database-url.ts';
import { openCommandStore, openReader } from '../store/open-store.ts';
import type { CommandRun } from '../store/plant-store.ts';
import { wasServed } from '../store/sqlite/serve-lock.ts';

/**
 * Notes for the console that a command ended now. A failure is only a warning. A store on SQLite
 * that no service has used may be a backup. It stays as it is.
 */
export async function noteRun(
  database: string,
  command: CommandRun['command'],
  result: string,
): Promise<void> {
  const address = databaseAddressOf(database);
  if (address.engine === 'sqlite' && !wasServed(address.path)) return;
  try {
    // The store may have been moved away meanwhile. Then this must not create a new one.
    await (await openReader(database))[Symbol.asyncDispose]();
    const store = await openCommandStore(database);
    await store.recordRun({ command, endedAt: Date.now(), result }).finally(() => store.close());
  } catch (error) {
    console.error(`WARNING: the console will not show this ${command}: ${(error as Error).message}`);
  }
}
