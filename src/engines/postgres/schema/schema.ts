import { readFileSync } from 'node:fs';
import { StoreRejected } from '../../../core/commit/store-errors.ts';
import type { SchemaSteps } from '../../storage-engine.ts';
import { missingStoreError, rejectSchema, schemaFaultsOf, schemaStepError } from '../../store-rejections.ts';
import type { Connection } from '../connection.ts';
import { GRANTS, INSUFFICIENT_PRIVILEGE, sqlStateOf } from '../postgres-errors.ts';
import type { StoreConnection } from '../topology/topology.ts';
import { EXPECTED_SCHEMA, TABLE_NAMES } from './expected-schema.ts';
import { TRIGGERS } from './table-guard.ts';

/**
 * The schema steps, of which the first one has the number 1. Each store applies a step once, so a
 * released step is never edited.
 */
export const SCHEMA_STEPS = [readFileSync(new URL('./001-store.sql', import.meta.url), 'utf8')];

/** Timeout of one schema step, which may change a large table. */
const SCHEMA_STEP_TIMEOUT_MS = 3_600_000;
/** The key of a lock on the database while steps are applied: the four bytes "PLST". */
const SCHEMA_LOCK = 0x504c5354;

const UNDEFINED_TABLE = '42P01';
/** A column is missing or has another type, so the table is not ours. */
const OTHER_COLUMNS = /^(?:42703|42804|42883)$/;
/** Another table or type has this name. */
const NAME_TAKEN = /^(?:42P07|42710)$/;
/** The user lacks the right, or may use no schema of the search path. */
const MAY_NOT_CREATE = [INSUFFICIENT_PRIVILEGE, '3F000'];

/**
 * Applies all missing schema steps in one transaction. Of several instances that start at the same
 * time, one creates the tables, and the others find them.
 *
 * @throws {StoreRejected} if the user may not do this, or the schema is not ours
 */
export async function applySchemaSteps(connection: StoreConnection): Promise<SchemaSteps> {
  let before = await schemaStep(connection);
  try {
    if (before < SCHEMA_STEPS.length) {
      await connection.transaction(async () => {
        const run = (text: string) => connection.run({ text }, SCHEMA_STEP_TIMEOUT_MS);
        await run(`SET LOCAL statement_timeout = ${SCHEMA_STEP_TIMEOUT_MS}`);
        await run(`SELECT pg_advisory_xact_lock(${SCHEMA_LOCK})`);
        await run('CREATE TABLE IF NOT EXISTS plant_schema_step (step integer NOT NULL PRIMARY KEY)');
        before = await schemaStep(connection);
        for (const [index, sql] of SCHEMA_STEPS.entries()) {
          if (index < before) continue;
          await run(sql);
          await run(`INSERT INTO plant_schema_step VALUES (${index + 1})`);
        }
        if (before === 0) for (const text of connection.topology.newTableTexts) await run(text);
      });
    }
  } catch (error) {
    const sqlState = sqlStateOf(error) ?? '';
    if (MAY_NOT_CREATE.includes(sqlState)) throw missingRightError(before, error);
    throw NAME_TAKEN.test(sqlState) ? nameTakenError(error) : error;
  }
  rejectSchema(await schemaFaults(connection));
  for (const text of connection.topology.tableTexts) await connection.run({ text }, SCHEMA_STEP_TIMEOUT_MS);
  return { before, now: SCHEMA_STEPS.length };
}

/** @throws {StoreRejected} when a reader finds no store, another schema, or lacks a right */
export async function rejectUnreadable(connection: Connection): Promise<void> {
  const step = await schemaStep(connection);
  if (step === 0) throw missingStoreError('in this database');
  if (step < SCHEMA_STEPS.length) throw schemaStepError('it', step, SCHEMA_STEPS.length);
  await rejectMissingRights(connection, READER_RIGHTS);
}

/** Selects what must not change. Other tables, other indexes, rights and a CHECK do no harm. */
const FOUND = `SELECT item || ' of ' || relname, definition FROM pg_class AS ours CROSS JOIN LATERAL (
    SELECT 'column ' || attname, concat_ws(' ', format_type(atttypid, atttypmod),
        CASE WHEN attnotnull THEN 'NOT NULL' END, CASE WHEN attcollation <> typcollation THEN 'COLLATE' END,
        CASE WHEN atthasdef OR attidentity <> '' THEN 'DEFAULT' END)
      FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid
      WHERE attrelid = ours.oid AND attnum > 0 AND NOT attisdropped
    UNION ALL SELECT 'index ' || indexrelid::regclass, CASE WHEN indisprimary THEN 'PRIMARY KEY ' ELSE 'UNIQUE ' END
        || substring(pg_get_indexdef(indexrelid) FROM '\\(.*') FROM pg_index WHERE indrelid = ours.oid AND indisunique
    UNION ALL SELECT 'foreign key ' || conname, '' FROM pg_constraint WHERE conrelid = ours.oid AND contype = 'f'
    UNION ALL SELECT 'trigger ' || tgname, '' ${TRIGGERS} AND tgrelid = ours.oid
    UNION ALL SELECT 'rule ' || rulename, '' FROM pg_rewrite WHERE ev_class = ours.oid
    UNION ALL SELECT 'inheritance by ' || inhrelid::regclass, '' FROM pg_inherits WHERE ours.oid IN (inhparent, inhrelid)
    UNION ALL SELECT 'kind ' || relkind::text, '' WHERE relkind <> 'r'
    UNION ALL SELECT 'property UNLOGGED', '' WHERE relpersistence <> 'p'
    UNION ALL SELECT 'row-level security', '' WHERE relrowsecurity
  ) AS found (item, definition) WHERE ours.oid IN (
    ${TABLE_NAMES.map(table => `to_regclass('${table}')`).join(', ')}
  )`;

/** @returns one text for each difference between the tables and the expected ones */
export async function schemaFaults(connection: Connection): Promise<string[]> {
  const rows = await connection.run({ text: FOUND });
  return schemaFaultsOf(EXPECTED_SCHEMA, new Map(rows as [string, string][]));
}

const READER_RIGHTS = ['SELECT on plant_revision', 'SELECT on token'];
const PLANT_RIGHTS = [...READER_RIGHTS, 'INSERT on plant_revision'];
export const SERVICE_RIGHTS = [
  ...PLANT_RIGHTS,
  'UPDATE (last_used_day) on token',
  ...['SELECT', 'INSERT', 'DELETE'].map(right => `${right} on console_code`),
  ...['SELECT', 'INSERT', 'DELETE', 'UPDATE (expires_at)'].map(right => `${right} on console_session`),
  ...['SELECT', 'INSERT', 'UPDATE'].map(right => `${right} on last_run`),
  ...['SELECT', 'INSERT', 'UPDATE'].map(right => `${right} on known_damage`),
];
export const COPY_RIGHTS = [...PLANT_RIGHTS, 'INSERT on token', 'UPDATE on token'];

/** @throws {StoreRejected} if a right is missing, since it would later look like an outage */
export async function rejectMissingRights(connection: Connection, rights: string[]): Promise<void> {
  const conditions = rights.map(right => {
    const [, privilege, column, table] = /^(\w+)(?: \((\w+)\))? on (\w+)$/.exec(right)!;
    return column === undefined
      ? `has_table_privilege('${table}', '${privilege}')`
      : `has_column_privilege('${table}', '${column}', '${privilege}')`;
  });
  const [replies] = await connection.run({ text: `SELECT ${conditions.join(', ')}` });
  const missing = rights.filter((_, index) => replies![index] !== 't');
  if (missing.length > 0) {
    throw new StoreRejected(`the user lacks a right (${missing.join(', ')})`, { advice: GRANTS });
  }
}

/** The number of the last step that was applied; 0 when there is no plant store. */
async function schemaStep(connection: Connection): Promise<number> {
  let step = 0;
  try {
    const [row] = await connection.run({ text: 'SELECT coalesce(max(step), 0) FROM plant_schema_step' });
    step = Number(row![0]);
  } catch (error) {
    const sqlState = sqlStateOf(error) ?? '';
    if (OTHER_COLUMNS.test(sqlState)) throw nameTakenError(error);
    if (sqlState !== UNDEFINED_TABLE) throw error;
  }
  if (step > SCHEMA_STEPS.length) throw schemaStepError('it', step, SCHEMA_STEPS.length);
  return step;
}

function missingRightError(step: number, cause: unknown): StoreRejected {
  const [state, move] =
    step === 0
      ? [
          'there is no plant store yet, and this user may not create one',
          '`npx plant-store copy` to move a store here, or ',
        ]
      : [`it has schema step ${step}, and this user may not update it to ${SCHEMA_STEPS.length}`, ''];
  return new StoreRejected(`${state} (${(cause as Error).message})`, {
    advice: `as the role that owns the database, run ${move}\`npx plant-store token create LABEL\`; see docs/postgresql-roles.sql`,
    cause,
  });
}

function nameTakenError(cause: unknown): StoreRejected {
  return new StoreRejected(
    `another object in this database has a name that the plant store needs (${(cause as Error).message})`,
    {
      advice: 'use a separate database, or set a separate search_path with the parameter options',
      cause,
    },
  );
}
