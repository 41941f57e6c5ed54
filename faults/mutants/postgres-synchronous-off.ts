/**
 * A mutant of the PostgreSQL store: PostgreSQL confirms a commit before the disk or a standby has
 * it. `node --import` loads it before the service.
 */
import { PgConnection } from '../../src/engines/postgres/connections/pg-connection.ts';

const { run } = PgConnection.prototype;

PgConnection.prototype.run = function (statement, timeoutMs) {
  const text = statement.text.startsWith('SET synchronous_commit')
    ? 'SET synchronous_commit = off'
    : statement.text.replace(`WHEN 'off' THEN set_config`, `WHEN 'other' THEN set_config`);
  return run.call(this, { ...statement, text }, timeoutMs);
};
