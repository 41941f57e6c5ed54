import { openCommandStore, openReader } from '../store/open-store.ts';
import type { CommandRun } from '../store/plant-store.ts';

/** Notes for the console that a command ended now. A failure is only a warning. */
export async function noteRun(
  database: string,
  command: CommandRun['command'],
  result: string,
): Promise<void> {
  try {
    // The store may have been moved away meanwhile. Then this must not create a new one.
    await (await openReader(database))[Symbol.asyncDispose]();
    const store = await openCommandStore(database);
    await store.recordRun({ command, endedAt: Date.now(), result }).finally(() => store.close());
  } catch (error) {
    console.error(`WARNING: the console will not show this ${command}: ${(error as Error).message}`);
  }
}
