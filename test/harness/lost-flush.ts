import { until } from './until.ts';

type RunSql = (sql: string) => Promise<Record<string, unknown>[]>;

/**
 * Makes the connection of the next insert lose `synchronous_commit`, as another client of a pooler
 * could.
 *
 * @returns waits until this connection has ended
 */
export async function loseFlushAtNextInsert(sql: RunSql): Promise<() => Promise<void>> {
  await sql(
    `CREATE TABLE loss AS SELECT NULL::int AS pid;
     CREATE FUNCTION lose() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
       UPDATE loss SET pid = pg_backend_pid() WHERE pid IS NULL;
       IF FOUND THEN PERFORM set_config('synchronous_commit', 'off', false); END IF;
       RETURN true; END $$;
     ALTER TABLE plant_revision ADD CHECK (lose()) NOT VALID`,
  );
  const lost = 'SELECT pid FROM pg_stat_activity JOIN loss USING (pid)';
  return () => until('the connection has ended', async () => (await sql(lost)).length === 0);
}
