/**
 * A mutant of the PostgreSQL store: PostgreSQL confirms a commit before the disk or a standby has
 * it. `node --import` loads it before the service.
 */
import { Connection } from '../../src/store/postgres/connection.ts';

const { run } = Connection.prototype;

Connection.prototype.run = function (statement, timeoutMs) {
  const isSetting = statement.text.startsWith('SET synchronous_commit');
  return run.call(this, isSetting ? { text: 'SET synchronous_commit = off' } : statement, timeoutMs);
};
