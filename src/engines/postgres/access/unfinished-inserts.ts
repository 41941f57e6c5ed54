import { setTimeout as sleep } from 'node:timers/promises';
import { StoreUnavailable } from '../../../core/commit/store-errors.ts';
import { OPERATION_TIMEOUT_MS, STATEMENT_TIMEOUT_MS, type TextRow } from '../connection.ts';
import type { StoreConnection } from '../topology/topology.ts';

/** For this time, a statement may be on the network before the server begins it. */
const ARRIVAL_MS = 2_000;
/**
 * The server begins the insert of a revision at most this long after the time of the revision. It is
 * longer only if a service was stopped for seconds (such as by SIGSTOP), or the network held a
 * statement up.
 */
export const INSERT_BEGINS_WITHIN_MS = OPERATION_TIMEOUT_MS + ARRIVAL_MS;

const POLL_INTERVAL_MS = 100;
/** Inserts end within 2 s, except those that wait for a standby or that an SQL client has made. */
const UNFINISHED_MAX_MS = 60_000;

/**
 * Selects the transactions that have changed `plant_revision`, or are about to. Each has this lock
 * from the start of its statement until its changes are visible, also while its commit waits for a
 * standby. Every user may read this view, and sees in it the transactions of all users
 * (https://www.postgresql.org/docs/current/view-pg-locks.html).
 */
const UNFINISHED = `SELECT virtualtransaction, coalesce('process ' || pid, 'a prepared transaction') FROM pg_locks
  WHERE relation = 'plant_revision'::regclass AND mode = 'RowExclusiveLock'
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;

/**
 * Resolves when every revision is visible that has a time up to this one. No timeout of a service
 * limits this: a commit can wait for a standby without an end, even after its service has ended.
 *
 * The locks on other servers are not visible here. So, if there may be such servers, the timeout of a
 * statement is waited out, and a commit that waits for longer is missed.
 *
 * @param time ms since 1970, by the clock of the services; not in the future
 * @throws {StoreUnavailable} if a transaction does not end
 */
export async function untilVisible(connection: StoreConnection, time: number): Promise<void> {
  const withinMs = INSERT_BEGINS_WITHIN_MS + (connection.topology.spansServers ? STATEMENT_TIMEOUT_MS : 0);
  await sleep(Math.max(0, time + withinMs - Date.now()));
  const unfinished = (): Promise<TextRow[]> => connection.run({ text: UNFINISHED });
  const waitingSince = performance.now();
  // A transaction that begins later has later revisions.
  let rows = await unfinished();
  while (rows.length > 0) {
    if (performance.now() - waitingSince > UNFINISHED_MAX_MS) {
      const fault = `a transaction that writes plants has not ended for ${UNFINISHED_MAX_MS / 1000} s (${rows[0]![1]})`;
      const advice = 'check the synchronous standbys of the server, or end it with pg_terminate_backend';
      throw new StoreUnavailable(fault, { advice });
    }
    await sleep(POLL_INTERVAL_MS);
    const names = new Set((await unfinished()).map(([name]) => name));
    rows = rows.filter(([name]) => names.has(name));
  }
}
