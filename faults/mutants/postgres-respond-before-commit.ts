/**
 * A mutant of the PostgreSQL store: it confirms plants before the commit, and ignores a failed
 * commit. `node --import` loads it before the service.
 */
import { Connection } from '../../src/engines/postgres/connection.ts';

/** Long enough for the responses to be sent, and for a fault before the commit. */
const COMMIT_DELAY_MS = 50;

const { run } = Connection.prototype;
const uncommitted = new WeakSet<Connection>();

/** Called before each statement, which therefore finds the transaction committed. */
function commitNow(connection: Connection): void {
  // The fault of this mutant: the clients already have their 200.
  if (uncommitted.delete(connection)) run.call(connection, { text: 'COMMIT' }).catch(() => {});
}

Connection.prototype.run = function (statement, timeoutMs) {
  commitNow(this);
  return run.call(this, statement, timeoutMs);
};

Connection.prototype.commit = async function (statement) {
  await this.run({ text: 'BEGIN' });
  uncommitted.add(this);
  setTimeout(() => commitNow(this), COMMIT_DELAY_MS);
  return await run.call(this, statement);
};
