import type { PlantRevision } from '../../core/commit/plant-revision.ts';
import { isInteger, numberOf, type Query, type Row, textOf } from './table-access.ts';

/** The columns of `plant_revision`, in the order in which they are written and read. */
export const REVISION_COLUMNS = 'id, revision, name, tag, recorded_at, recorded_by, checksum';

/**
 * About when the store got its first plant, in ms since 1970: the oldest time of the plants with the
 * smallest ids, since a search of all would take long.
 *
 * @returns undefined if there is no plant
 */
export async function firstPlantAt(query: Query): Promise<number | undefined> {
  const text =
    'SELECT min(recorded_at) FROM (SELECT recorded_at FROM plant_revision ORDER BY id LIMIT 20) AS first';
  const [row] = await query(text, []);
  return row![0] === null ? undefined : numberOf(row![0]);
}

/** Counts plants and revisions: each plant has one revision 1. */
export async function countRows(query: Query): Promise<{ plants: number; revisions: number }> {
  const text = 'SELECT count(*) FILTER (WHERE revision = 1), count(*) FROM plant_revision';
  const [plants, revisions] = (await query(text, []))[0]!.map(Number);
  return { plants: plants!, revisions: revisions! };
}

/** @returns 0 if there is none */
export async function newestTime(query: Query, until: number): Promise<number> {
  const text = 'SELECT coalesce(max(recorded_at), 0) FROM plant_revision WHERE recorded_at <= $1';
  const [row] = await query(text, [until]);
  return numberOf(row![0]);
}

/**
 * Reads a row, which may be damaged: then SQLite may find a value of any type in any column.
 *
 * A row with such a value gets no checksum, so `isIntact` rejects it. The value is read as 0 or as
 * an empty text, since messages name a damaged revision by its other values.
 */
export function revisionOf(row: Readonly<Row>): PlantRevision {
  const [id, revision, name, tag, recordedAt, recordedBy, checksum] = row;
  const plant = { id: bigintOf(id), name: textOf(name) };
  return {
    plant: tag === null ? plant : { ...plant, tag: textOf(tag) },
    revision: numberOf(revision),
    recordedAt: numberOf(recordedAt),
    recordedBy: numberOf(recordedBy),
    checksum: hasRightTypes(row) ? bigintOf(checksum) : undefined,
  };
}

function hasRightTypes([id, revision, name, tag, recordedAt, recordedBy, checksum]: Readonly<Row>): boolean {
  return (
    isInteger(id) &&
    isInteger(revision) &&
    typeof name === 'string' &&
    (tag === null || typeof tag === 'string') &&
    isInteger(recordedAt) &&
    isInteger(recordedBy) &&
    isInteger(checksum)
  );
}

/** @returns 0 if the value of a damaged row is no integer */
function bigintOf(value: unknown): bigint {
  try {
    return BigInt(value as bigint);
  } catch {
    return 0n;
  }
}

/** @returns a negative number when `one` comes before `two` */
export function keyOrder(one: PlantRevision, two: PlantRevision): number {
  if (one.plant.id === two.plant.id) return one.revision - two.revision;
  return one.plant.id < two.plant.id ? -1 : 1;
}

export function revisionName({ plant, revision }: PlantRevision): string {
  return `revision ${revision} of plant ${plant.id}`;
}
