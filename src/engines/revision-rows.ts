import type { PlantRevision } from '../core/commit/plant-revision.ts';

/** The columns of `plant_revision`, in the order in which they are written and read. */
export const REVISION_COLUMNS = 'id, revision, name, tag, recorded_at, recorded_by, checksum';

/** The values of one row. A number is a text from PostgreSQL, and a bigint from SQLite. */
export type Row = (string | bigint | null)[];

/** Runs one statement as a transaction of its own. Its parameters are `$1`, `$2` and so on. */
export type Query = (text: string, values: unknown[]) => Promise<Row[]>;

/** Counts plants and revisions: each plant has one revision 1. */
export async function countRows(query: Query): Promise<{ plants: number; revisions: number }> {
  const text = 'SELECT count(*) FILTER (WHERE revision = 1), count(*) FROM plant_revision';
  const [plants, revisions] = (await query(text, []))[0]!.map(Number);
  return { plants: plants!, revisions: revisions! };
}

export async function newestTime(query: Query, until: number): Promise<number> {
  const [row] = await query('SELECT max(recorded_at) FROM plant_revision WHERE recorded_at <= $1', [until]);
  return numberOf(row![0]);
}

export function revisionOf(row: Readonly<Row>): PlantRevision {
  const [id, revision, name, tag, recordedAt, recordedBy, checksum] = row;
  const plant = { id: integer(id), name: textOf(name) };
  return {
    plant: tag === null ? plant : { ...plant, tag: textOf(tag) },
    revision: numberOf(revision),
    recordedAt: numberOf(recordedAt),
    recordedBy: numberOf(recordedBy),
    checksum: integer(checksum),
  };
}

/**
 * A value of a damaged row of SQLite may have any type. A value of another type is read as 0 or as
 * an empty text. The checksum of the row is then wrong, unless that was the original value.
 */
function integer(value: unknown): bigint {
  try {
    return BigInt(value as bigint);
  } catch {
    return 0n;
  }
}

export function numberOf(value: unknown): number {
  const integer = Number(value);
  return Number.isInteger(integer) ? integer : 0;
}

export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** @returns a negative number when `one` comes before `two` */
export function keyOrder(one: PlantRevision, two: PlantRevision): number {
  if (one.plant.id === two.plant.id) return one.revision - two.revision;
  return one.plant.id < two.plant.id ? -1 : 1;
}

export function revisionName({ plant, revision }: PlantRevision): string {
  return `revision ${revision} of plant ${plant.id}`;
}
