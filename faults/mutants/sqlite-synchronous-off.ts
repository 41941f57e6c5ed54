/**
 * Breaks the store on purpose: SQLite flushes nothing, though it says that it does. A power cut then loses plants; the end
 * of the process alone does not. Loaded before the service, on each of its threads: `node --import`.
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
