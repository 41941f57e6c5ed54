import { withChecksum } from '../../src/store/checksum.ts';
import { openReader } from '../../src/store/open-store.ts';
import type { PlantRevision } from '../../src/store/plant-store.ts';
import { faultsOf, type LoggedRequest } from './client-log.ts';

/** Reads all revisions of a store, as `export` does. */
export async function storedRevisions(database: string): Promise<PlantRevision[]> {
  await using reader = await openReader(database);
  return await Array.fromAsync(reader.revisions());
}

/** An INSERT for both engines. A row is `[id, revision, name, tag, recorded_at, recorded_by]`. */
export function insertSql(
  ...rows: [id: number | bigint, revision: number, name: string, tag: string | null, at: number, by: number][]
): string {
  const values = rows.map(([id, revision, name, tag, recordedAt, recordedBy]) => {
    const plant = tag === null ? { id: BigInt(id), name } : { id: BigInt(id), name, tag };
    const { checksum } = withChecksum({ plant, revision, recordedAt, recordedBy });
    const texts = [name, tag].map(text => (text === null ? 'NULL' : `'${text}'`));
    return `(${[id, revision, ...texts, recordedAt, recordedBy, checksum].join(', ')})`;
  });
  return `INSERT INTO plant_revision VALUES ${values.join(', ')}`;
}

/** Compares the stored revisions with the responses that clients received; see {@link faultsOf}. */
export async function faultsIn(database: string, log: readonly LoggedRequest[]): Promise<string[]> {
  return faultsOf(log, await storedRevisions(database));
}
