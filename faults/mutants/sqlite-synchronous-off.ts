/**
 * A mutant of the SQLite store: SQLite never flushes, but reports that it does. A power cut then
 * loses plants; a kill of the process does not. `node --import` loads it before the service, on
 * each of its threads.
 */
import { DatabaseSync } from 'node:sqlite';

const { exec, prepare } = DatabaseSync.prototype;

DatabaseSync.prototype.exec = function (sql) {
  exec.call(this, sql);
  if (/PRAGMA synchronous = FULL/.test(sql)) exec.call(this, 'PRAGMA synchronous = OFF');
};

DatabaseSync.prototype.prepare = function (sql, ...rest) {
  return prepare.call(this, sql === 'PRAGMA synchronous' ? 'SELECT 2 AS synchronous' : sql, ...rest);
};
