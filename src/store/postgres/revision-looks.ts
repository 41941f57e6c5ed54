import type { Connection, TextRow } from './connection.ts';
import { type NewRevision, REVISION_COLUMNS } from './revision-insert.ts';

/**
 * The latest revision of each of these ids.
 *
 * One entry of the primary key is read for each id, however many revisions it has. Citus sends no such join to its
 * nodes; there each node goes through all revisions of the ids it has.
 *
 * @returns rows of id, revision, name, tag
 */
export function latestRevisions(connection: Connection, ids: readonly bigint[]): Promise<TextRow[]> {
  return connection.run({
    name: 'latest_revisions',
    text: connection.isCitus
      ? `SELECT DISTINCT ON (id) id, revision, name, tag FROM plant_revision
          WHERE id = ANY($1::bigint[]) ORDER BY id, revision DESC`
      : `SELECT latest.* FROM unnest($1::bigint[]) AS wanted(id) CROSS JOIN LATERAL (
            SELECT id, revision, name, tag FROM plant_revision WHERE id = wanted.id ORDER BY revision DESC LIMIT 1
          ) AS latest`,
    values: [ids],
  });
}

/**
 * What stands under the numbers of these revisions and under the ones before them, and the latest revision of each id:
 * from one look, since between two of them a statement that is late could be carried out.
 *
 * @returns rows of {@link REVISION_COLUMNS}, in the order of ids, then revisions
 */
export function neighbourhoods(
  connection: Connection,
  revisions: readonly NewRevision[],
): Promise<TextRow[]> {
  const ids = revisions.map(({ id }) => id);
  const numbers = revisions.map(({ revision }) => revision);
  if (connection.isCitus) {
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
        ) AS near ORDER BY id, revision`,
    values: [ids, numbers],
  });
}
