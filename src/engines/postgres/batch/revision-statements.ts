import { textLengthOf } from '../../../core/commit/batch-size.ts';
import type { PlantRevision } from '../../../core/commit/plant-revision.ts';
import { REVISION_COLUMNS, revisionOf } from '../../tables/revision-rows.ts';
import type { Statement, TextRow } from '../connection.ts';
import type { StoreConnection, Topology } from '../topology/topology.ts';

const COLUMN_COUNT = REVISION_COLUMNS.split(',').length;

/** The {@link REVISION_COLUMNS} of a revision, as the server sends them. */
export function rowOf({ plant, revision, recordedAt, recordedBy, checksum }: PlantRevision): TextRow {
  const { id, name, tag = null } = plant;
  return [String(id), String(revision), name, tag, String(recordedAt), String(recordedBy), String(checksum)];
}

/**
 * Inserts revisions that do not exist yet, and returns the ids of the inserted ones.
 *
 * Parsing costs as much as execution, so the statement is prepared for a few row counts only. Copies
 * of the row with the least text fill up the count. The copies conflict with this row and change
 * nothing.
 */
export function revisionInsert(revisions: readonly PlantRevision[], topology: Topology): Statement {
  const count = preparedCount(revisions.length);
  const values: unknown[] = [];
  const shorter = (one: PlantRevision, two: PlantRevision): PlantRevision =>
    textLengthOf(two.plant) < textLengthOf(one.plant) ? two : one;
  const filler = count === revisions.length ? undefined : revisions.reduce(shorter);
  for (let row = 0; row < count; row++) {
    const { plant, revision, recordedAt, recordedBy, checksum } = revisions[row] ?? filler!;
    values.push(plant.id, revision, plant.name, plant.tag, recordedAt, recordedBy, checksum);
  }
  return { name: `insert_${count}`, text: topology.insertText(count), values };
}

/** The next of 1, 2, 3, 4, 6, 8, 12, 16, 24, …: at most 1.5 times the row count. */
function preparedCount(rowCount: number): number {
  let count = 1;
  while (count < rowCount) count *= 2;
  const between = (count / 4) * 3;
  return Number.isInteger(between) && between >= rowCount ? between : count;
}

/**
 * An SQL expression for a connection that has lost `synchronous_commit`. It enables the setting for
 * the commit of this statement, and returns `on`.
 */
export const FLUSH = `(SELECT CASE current_setting('synchronous_commit', true)
  WHEN 'off' THEN set_config('synchronous_commit', 'on', true) END)`;

/**
 * Returns a function that makes the INSERT of so many rows, once for each number. It uses `VALUES`,
 * because rows selected from arrays are much slower where several servers store them.
 *
 * @param returning the expressions after RETURNING
 */
export function insertTexts(returning: string): Topology['insertText'] {
  const texts = new Map<number, string>();
  return rowCount =>
    texts.getOrInsertComputed(rowCount, () => {
      const rows = Array.from({ length: rowCount }, (_, row) => {
        const first = row * COLUMN_COUNT + 1;
        return `(${Array.from({ length: COLUMN_COUNT }, (_, column) => `$${first + column}`).join(', ')})`;
      });
      return `INSERT INTO plant_revision (${REVISION_COLUMNS})
      VALUES ${rows.join(', ')} ON CONFLICT (id, revision) DO NOTHING
      RETURNING ${returning}`;
    });
}

/** Looks up the latest revision of each of these ids. */
export async function latestRevisions(
  connection: StoreConnection,
  ids: readonly bigint[],
): Promise<PlantRevision[]> {
  const text = connection.topology.latestText;
  const rows = await connection.run({ name: 'latest_revisions', text, values: [ids] });
  return rows.map(revisionOf);
}

/**
 * Looks up three revisions of each id: with this number, with the number before it, and the latest.
 * It must be one statement: between two, the server could execute a statement that arrives late.
 */
export function revisionsAround(
  connection: StoreConnection,
  revisions: readonly PlantRevision[],
): Promise<TextRow[]> {
  const ids = revisions.map(({ plant }) => plant.id);
  const numbers = revisions.map(({ revision }) => revision);
  return connection.run(connection.topology.revisionsAround(ids, numbers));
}
