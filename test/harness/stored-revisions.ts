import { contentChecksum, revisionChecksum } from '../../src/core/commit/checksum.ts';
import type { IntactRevision, PlantRevision } from '../../src/core/commit/plant-revision.ts';
import type { LoggedRequest } from './client-log.ts';
import { faultsOf } from './log-faults.ts';
import { openReader } from './open-store.ts';
import type { EngineUnderTest } from './store-under-test.ts';

/** Reads all revisions of a store, as `export` does. */
export async function storedRevisions(database: string): Promise<PlantRevision[]> {
  await using reader = await openReader(database);
  return await Array.fromAsync(reader.revisions());
}

export async function storedRevisionsOf(database: string, id: bigint): Promise<PlantRevision[]> {
  return (await storedRevisions(database)).filter(({ plant }) => plant.id === id);
}

/** The columns of `plant_revision` except the checksum. */
export type Row = [
  id: number | bigint,
  revision: number,
  name: string,
  tag: string | null,
  recordedAt: number,
  recordedBy: number,
];

/** Adds the checksum to a revision whose content is known to be right. */
export function withChecksum(revision: Omit<PlantRevision, 'checksum'>): IntactRevision {
  return { ...revision, checksum: revisionChecksum(contentChecksum(revision.plant), revision) };
}

export function revisionOfRow([id, revision, name, tag, recordedAt, recordedBy]: Row): PlantRevision {
  const plant = tag === null ? { id: BigInt(id), name } : { id: BigInt(id), name, tag };
  return withChecksum({ plant, revision, recordedAt, recordedBy });
}

export function insertSql(...rows: Row[]): string {
  const values = rows.map(row => {
    const shown = row.map(value => (typeof value === 'string' ? `'${value}'` : (value ?? 'NULL')));
    return `(${[...shown, revisionOfRow(row).checksum].join(', ')})`;
  });
  return `INSERT INTO plant_revision VALUES ${values.join(', ')}`;
}

/** Changes rows, as a disk would, without the triggers of SQLite that prevent it. */
export async function changeRows(under: EngineUnderTest, database: string, text: string): Promise<void> {
  const select = `SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'`;
  const triggers = under.name === 'SQLite' ? await under.sql(database, select) : [];
  for (const { name } of triggers) await under.sql(database, `DROP TRIGGER ${name}`);
  await under.sql(database, text);
  for (const { sql } of triggers) await under.sql(database, String(sql));
}

/** Compares the stored revisions with the responses that clients received; see {@link faultsOf}. */
export async function faultsIn(database: string, log: readonly LoggedRequest[]): Promise<string[]> {
  return faultsOf(log, await storedRevisions(database));
}
