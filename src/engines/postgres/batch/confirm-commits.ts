import { StoreRejected } from '../../../core/commit/store-errors.ts';
import type { Connection } from '../connection.ts';
import { INSUFFICIENT_PRIVILEGE, sqlStateOf } from '../postgres-errors.ts';

/**
 * Returns when all commits that were visible before are as durable as this server makes commits.
 *
 * A synchronous standby may lack a visible commit if the wait for it was cancelled or the server
 * crashed. A new commit waits for the standby, and so for all commits before it. The smallest
 * commit is a message in the write-ahead log
 * (https://www.postgresql.org/docs/current/functions-admin.html, `pg_logical_emit_message`).
 */
export async function confirmEverythingBefore(connection: Connection): Promise<void> {
  const [row] = await connection.run({
    text: `SELECT coalesce(current_setting('synchronous_standby_names', true), '')`,
  });
  if (row![0] === '') return;
  try {
    await connection.commit({ text: `SELECT pg_logical_emit_message(true, 'plant-store', '')` });
  } catch (error) {
    if (sqlStateOf(error) !== INSUFFICIENT_PRIVILEGE) throw error;
    // The number of parameters depends on the version.
    const [grant] = await connection.run({
      text: `SELECT format('GRANT EXECUTE ON FUNCTION %s TO %I', oid::regprocedure, current_user)
        FROM pg_proc WHERE proname = 'pg_logical_emit_message' AND 'text'::regtype = proargtypes[2]`,
    });
    throw new StoreRejected('a synchronous standby must confirm plants, for which this user lacks a right', {
      advice: `run this in the database as a superuser: ${grant![0]}`,
      cause: error,
    });
  }
}
