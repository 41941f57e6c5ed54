import { openReader } from '../../src/store/open-store.ts';
import type { PlantRevision } from '../../src/store/plant-store.ts';
import { faultsOf, type LoggedRequest } from './client-log.ts';

/** Every revision of a store, as a reader of its own finds them. */
export async function storedRevisions(database: string): Promise<PlantRevision[]> {
  await using reader = await openReader(database);
  return await Array.fromAsync(reader.revisions());
}

/** Compares all that is stored with what clients were told; see {@link faultsOf}. */
export async function faultsIn(database: string, log: readonly LoggedRequest[]): Promise<string[]> {
  return faultsOf(log, await storedRevisions(database));
}
