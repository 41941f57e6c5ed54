import { rejectSchema } from '../../store-rejections.ts';
import { REVISION_COLUMNS } from '../../tables/revision-rows.ts';
import type { Connection } from '../connection.ts';
import { schemaFaults } from '../schema/schema.ts';
import { KEEPS_ROWS, REVISION_TYPES } from '../schema/table-guard.ts';

/**
 * The rule of `TABLE_GUARD` as a statement of its own, since Citus rejects that condition within a
 * statement. A worker does not tell what the coordinator knows, so it runs on the coordinator.
 */
const TABLE_CHECK = `SELECT ${KEEPS_ROWS}
    AND ARRAY(SELECT atttypid::regtype FROM pg_attribute JOIN unnest('{${REVISION_COLUMNS}}'::name[]) WITH ORDINALITY
        AS columns (name, number) ON attname = name AND attrelid = ours.oid AND NOT attisdropped ORDER BY number)
      = ${REVISION_TYPES}
  FROM pg_class AS ours WHERE oid = to_regclass('plant_revision')`;

/**
 * Rejects a table that may lose or change rows. Other differences, such as a further column, do no
 * harm: {@link schemaFaults} finds them, and they are warnings.
 *
 * @throws {StoreRejected}
 */
export async function rejectDangerousTable(coordinator: Connection): Promise<void> {
  const [row] = await coordinator.run({ text: TABLE_CHECK });
  if (row?.[0] !== 't') rejectSchema(await schemaFaults(coordinator));
}
