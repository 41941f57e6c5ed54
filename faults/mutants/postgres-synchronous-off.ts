/**
 * Breaks the store on purpose: PostgreSQL confirms a commit before it is on the disk, and before a standby has it. Loaded
 * before the service: `node --import`.
 */
import { Connection } from '../../src/store/postgres/connection.ts';

const { run } = Connection.prototype;

Connection.prototype.run = function (statement, waitMs) {
  const isSetting = statement.text.startsWith('SET synchronous_commit');
  return run.call(this, isSetting ? { text: 'SET synchronous_commit = off' } : statement, waitMs);
};
