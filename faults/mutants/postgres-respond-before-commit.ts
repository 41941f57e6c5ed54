/**
 * A mutant of the PostgreSQL store: it confirms plants before the commit, and ignores a failed
 * commit. `node --import` loads it before the service.
 */
import { PgConnection } from '../../src/engines/postgres/connections/pg-connection.ts';

/** Long enough for the responses to be sent, and for a fault before the commit. */
const COMMIT_DELAY_MS = 50;

const { run } = PgConnection.prototype;
const uncommitted = new WeakSet<PgConnection>();

/** Called before each statement, which therefore finds the transaction committed. */
function commitNow(connection: PgConnection): void {
  // The fault of this mutant: the clients already have their 200.
  if (uncommitted.delete(connection)) run.call(connection, { text: 'COMMIT' }).catch(() => {});
}

PgConnection.prototype.run = function (statement, timeoutMs) {
  commitNow(this);
  return run.call(this, statement, timeoutMs);
};

PgConnection.prototype.commit = async function (statement) {
  await this.run({ text: 'BEGIN' });
  uncommitted.add(this);
  setTimeout(() => commitNow(this), COMMIT_DELAY_MS);
  return await run.call(this, statement);
};
