/**
 * Breaks the store on purpose: a batch is answered first and committed a while later, and nobody is told when that fails.
 * Loaded before the service, on each of its threads: `node --import`.
 */
import { DatabaseSync, StatementSync } from 'node:sqlite';

/** Long enough for the answers to be sent. */
const COMMIT_AFTER_MS = 20;

let commit: (() => void) | undefined;

/** What comes next on this thread finds the transaction committed, as it must be for it to work at all. */
function commitNow(): void {
  const due = commit;
  commit = undefined;
  try {
    due?.();
  } catch {
    // The weakness: those it was for have their 200.
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
  setTimeout(commitNow, COMMIT_AFTER_MS);
};
DatabaseSync.prototype.close = function () {
  commitNow();
  close.call(this);
};
