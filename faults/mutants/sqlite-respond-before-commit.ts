/**
 * A mutant of the SQLite store: it confirms a batch before the commit, and ignores a failed commit.
 * `node --import` loads it before the service, on each of its threads.
 */
import { DatabaseSync, StatementSync } from 'node:sqlite';

/** Long enough for the responses to be sent. */
const COMMIT_DELAY_MS = 20;

let commit: (() => void) | undefined;

/** Called before each statement, which needs the transaction to be committed. */
function commitNow(): void {
  const due = commit;
  commit = undefined;
  try {
    due?.();
  } catch {
    // The fault of this mutant: the clients already have their 200.
  }
}

const { run, get, all } = StatementSync.prototype;
const { exec, close } = DatabaseSync.prototype;

StatementSync.prototype.run = function (...parameters) {
  commitNow();
  return Reflect.apply(run, this, parameters);
};
StatementSync.prototype.get = function (...parameters) {
  commitNow();
  return Reflect.apply(get, this, parameters);
};
StatementSync.prototype.all = function (...parameters) {
  commitNow();
  return Reflect.apply(all, this, parameters);
};
DatabaseSync.prototype.exec = function (sql) {
  commitNow();
  if (sql !== 'COMMIT') return exec.call(this, sql);
  commit = () => exec.call(this, sql);
  setTimeout(commitNow, COMMIT_DELAY_MS);
};
DatabaseSync.prototype.close = function () {
  commitNow();
  close.call(this);
};
