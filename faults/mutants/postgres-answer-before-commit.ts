/**
 * Breaks the store on purpose: plants that PostgreSQL has taken are answered first and committed a while later, and nobody
 * is told when that fails. Loaded before the service: `node --import`.
 */
import { Connection } from '../../src/store/postgres/connection.ts';

/** Long enough for the answers to be sent, and for something to come in between. */
const COMMIT_AFTER_MS = 50;

const { run } = Connection.prototype;
const uncommitted = new WeakSet<Connection>();

/** Statements of a connection are sent one after the other: what comes next finds the transaction committed. */
function commitNow(connection: Connection): void {
  // The weakness: those it was for have their 200.
  if (uncommitted.delete(connection)) run.call(connection, { text: 'COMMIT' }).catch(() => {});
}

Connection.prototype.run = function (statement, waitMs) {
  commitNow(this);
  return run.call(this, statement, waitMs);
};

Connection.prototype.commit = async function (statement) {
  await this.run({ text: 'BEGIN' });
  uncommitted.add(this);
  setTimeout(() => commitNow(this), COMMIT_AFTER_MS);
  return await run.call(this, statement);
};
