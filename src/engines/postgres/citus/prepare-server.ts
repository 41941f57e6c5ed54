import { StoreRejected } from '../../../core/commit/store-errors.ts';
import type { Connection } from '../connection.ts';
import { sqlStateOf } from '../postgres-errors.ts';
import { hostName } from '../postgres-url.ts';
import { COORDINATOR_GROUP } from './citus-shards.ts';

/** The SQLSTATE when another instance changes the role at the same time. */
const CONCURRENT_UPDATE = 'XX000';

/** @throws {StoreRejected} if the server is a worker of Citus, which has no tokens */
export async function rejectWorker(connection: Connection): Promise<void> {
  const [row] = await connection.run({ text: 'SELECT groupid FROM pg_dist_local_group' });
  if (row![0] === COORDINATOR_GROUP) return;
  throw new StoreRejected(`${hostName(connection.host)} is a worker of Citus`, {
    advice: 'name only the coordinator',
  });
}

/**
 * Prepares a connection to a server that stores plants or passes them on.
 *
 * The service sets `synchronous_commit` for the role on each server, because Citus passes a
 * statement on without that setting of its session. Citus itself sets it only for roles that it
 * created.
 */
export async function prepareServer(connection: Connection): Promise<void> {
  // In Citus 13.2, each execution of a generic plan leaks memory.
  await connection.run({ text: 'SET plan_cache_mode = force_custom_plan' });
  try {
    await connection.run({ text: SET_COMMIT_OF_ROLE });
  } catch (error) {
    if (sqlStateOf(error) !== CONCURRENT_UPDATE) throw error;
  }
}

const SET_COMMIT_OF_ROLE = `DO $$ BEGIN
  IF NOT EXISTS (
    SELECT 1 FROM pg_db_role_setting JOIN pg_database ON pg_database.oid = setdatabase
    WHERE setrole = current_user::regrole AND datname = current_database()
      AND 'synchronous_commit=' || current_setting('synchronous_commit') = ANY (setconfig)
  ) THEN
    PERFORM set_config('citus.enable_ddl_propagation', 'off', true);
    EXECUTE format('ALTER ROLE CURRENT_USER IN DATABASE %I SET synchronous_commit FROM CURRENT', current_database());
  END IF;
END $$`;
