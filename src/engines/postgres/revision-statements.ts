import { textLengthOf } from '../../core/commit/batch-size.ts';
import type { PlantRevision } from '../../core/commit/plant-revision.ts';
import { REVISION_COLUMNS, revisionOf } from '../tables/revision-rows.ts';
import type { Connection, Statement, TextRow } from './connection.ts';
import { tableGuard } from './schema.ts';

const COLUMN_COUNT = REVISION_COLUMNS.split(',').length;

/** The {@link REVISION_COLUMNS} of a revision, as the server sends them. */
export function rowOf({ plant, revision, recordedAt, recordedBy, checksum }: PlantRevision): TextRow {
  const { id, name, tag = null } = plant;
  return [String(id), String(revision), name, tag, String(recordedAt), String(recordedBy), String(checksum)];
}

/**
 * Inserts revisions that do not exist yet, and returns the ids of the inserted ones.
 *
 * It uses `VALUES`, since Citus inserts rows selected from arrays much more slowly. Parsing costs
 * as much as execution, so the statement is prepared for a few row counts only. Copies of the row
 * with the least text fill up the count. The copies conflict with this row and change nothing.
 */
export function revisionInsert(revisions: readonly PlantRevision[], isCitus: boolean): Statement {
  const count = preparedCount(revisions.length);
  const values: unknown[] = [];
  const shorter = (one: PlantRevision, two: PlantRevision): PlantRevision =>
    textLengthOf(two.plant) < textLengthOf(one.plant) ? two : one;
  const filler = count === revisions.length ? undefined : revisions.reduce(shorter);
  for (let row = 0; row < count; row++) {
    const { plant, revision, recordedAt, recordedBy, checksum } = revisions[row] ?? filler!;
    values.push(plant.id, revision, plant.name, plant.tag, recordedAt, recordedBy, checksum);
  }
  return { name: `insert_${count}`, text: insertText(count, isCitus), values };
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
 * the commit of this statement, and returns `on`. Citus rejects this expression, so on Citus the
 * role has the setting.
 */
export const FLUSH = `(SELECT CASE current_setting('synchronous_commit', true)
  WHEN 'off' THEN set_config('synchronous_commit', 'on', true) END)`;

const insertTexts = new Map<string, string>();

function insertText(rowCount: number, isCitus: boolean): string {
  return insertTexts.getOrInsertComputed(`${rowCount} ${isCitus}`, () => {
    const rows = Array.from({ length: rowCount }, (_, row) => {
      const first = row * COLUMN_COUNT + 1;
      return `(${Array.from({ length: COLUMN_COUNT }, (_, column) => `$${first + column}`).join(', ')})`;
    });
    return `INSERT INTO plant_revision (${REVISION_COLUMNS})
      VALUES ${rows.join(', ')} ON CONFLICT (id, revision) DO NOTHING
      RETURNING CASE WHEN ${tableGuard(isCitus)} THEN id END${isCitus ? '' : `, ${FLUSH}`}`;
  });
}

/**
 * Looks up the latest revision of each of these ids.
 *
 * It joins the table with itself, since Citus rejects a join with an array of ids of several
 * shards. Citus asks every worker if a part of the join has no filter on ids. The `OR` keeps this
 * filter out of the index search, which would run for each pair of ids.
 */
export async function latestRevisions(
  connection: Connection,
  ids: readonly bigint[],
): Promise<PlantRevision[]> {
  const filter = connection.isCitus ? 'AND (id = ANY($1::bigint[]) OR id = ($1::bigint[])[1])' : '';
  const rows = await connection.run({
    name: 'latest_revisions',
    text: `SELECT latest.* FROM plant_revision AS first CROSS JOIN LATERAL (
        SELECT ${REVISION_COLUMNS} FROM plant_revision WHERE id = first.id ${filter} ORDER BY revision DESC LIMIT 1
      ) AS latest WHERE first.id = ANY($1::bigint[]) AND first.revision = 1 AND ${tableGuard(connection.isCitus)}`,
    values: [ids],
  });
  return rows.map(revisionOf);
}

/**
 * Looks up three revisions of each id: with this number, with the number before it, and the latest.
 * It must be one statement: between two, the server could execute a statement that arrives late.
 */
export function revisionsAround(
  connection: Connection,
  revisions: readonly PlantRevision[],
): Promise<TextRow[]> {
  const ids = revisions.map(({ plant }) => plant.id);
  const numbers = revisions.map(({ revision }) => revision);
  if (connection.isCitus) {
    // Citus rejects the join below. This statement may return more revisions, which do no harm.
    return connection.run({
      text: `SELECT ${REVISION_COLUMNS} FROM plant_revision
        WHERE id = ANY($1::bigint[]) AND revision >= $2 ORDER BY id, revision`,
      values: [ids, Math.min(...numbers) - 1],
    });
  }
  return connection.run({
    text: `SELECT near.* FROM unnest($1::bigint[], $2::integer[]) AS sent(id, revision) CROSS JOIN LATERAL (
          (SELECT ${REVISION_COLUMNS} FROM plant_revision
            WHERE id = sent.id AND revision IN (sent.revision - 1, sent.revision))
          UNION
          (SELECT ${REVISION_COLUMNS} FROM plant_revision WHERE id = sent.id ORDER BY revision DESC LIMIT 1)
        ) AS near WHERE ${tableGuard(false)} ORDER BY id, revision`,
    values: [ids, numbers],
  });
}
