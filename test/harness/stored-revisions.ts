import { openReader } from '../../src/store/open-store.ts';
import type { PlantRevision } from '../../src/store/plant-store.ts';
import { faultsOf, type LoggedRequest } from './client-log.ts';

/** Reads all revisions of a store, as `export` does. */
export async function storedRevisions(database: string): Promise<PlantRevision[]> {
  await using reader = await openReader(database);
  return await Array.fromAsync(reader.revisions());
}

/** Compares the stored revisions with the responses that clients received; see {@link faultsOf}. */
export async function faultsIn(database: string, log: readonly LoggedRequest[]): Promise<string[]> {
  return faultsOf(log, await storedRevisions(database));
}
