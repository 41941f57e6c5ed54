import { REVISION_COLUMNS } from '../../tables/revision-rows.ts';

/** Triggers that may change or delete rows. One for TRUNCATE, which is bit 32, does no harm. */
export const TRIGGERS = `FROM pg_trigger WHERE tgtype & 28 <> 0 AND tgenabled <> 'D' AND NOT tgisinternal`;

/**
 * Whether the table keeps each row as it was inserted, and no key twice. Its primary key is of its
 * first two columns. Without the key, an INSERT with ON CONFLICT fails, but not a COPY. The key is
 * read as a value: for EXISTS, the planner would read all indexes of the database, 0.08 ms for each
 * statement.
 */
export const KEEPS_ROWS = `relkind = 'r' AND relpersistence = 'p'
    AND NOT EXISTS (SELECT ${TRIGGERS} AND tgrelid = ours.oid)
    AND (SELECT indkey::text FROM pg_index WHERE indrelid = ours.oid AND indisprimary) IS NOT DISTINCT FROM '1 2'`;

/** The types of the columns of a revision. */
export const REVISION_TYPES = `'{bigint,integer,text,text,bigint,bigint,bigint}'::regtype[]`;

/**
 * An SQL condition that ends its statement with an error when the table may lose or change rows.
 * The schema may change at any time, so every statement whose rows decide a response has this
 * condition. Content changes only by a trigger, or by a column of another type. The join supplies
 * the types without reading a row.
 */
export const TABLE_GUARD = `(SELECT CASE WHEN (SELECT ${KEEPS_ROWS} FROM pg_class AS ours WHERE oid = 'plant_revision'::regclass)
    AND ARRAY[${REVISION_COLUMNS.replace(/\w+/g, 'pg_typeof($&)')}]
      = ${REVISION_TYPES}
  -- current_database() keeps the planner from evaluating the cast.
  THEN true ELSE ('plant_revision was changed; \`npx plant-store verify\` names it in ' || current_database())::boolean END
  FROM (SELECT) AS one LEFT JOIN plant_revision ON false)`;
