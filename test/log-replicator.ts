/**
 * Does to a store what a replicator of its log such as Litestream does:
 *
 *   node test/log-replicator.ts DATABASE MODE PAGES
 *
 * A read transaction is open all the time, so that the log is not begun anew before it was read. Again and again the log
 * is read, and when it has so many pages the transaction is let go for a checkpoint: PASSIVE, which waits for nobody, or
 * TRUNCATE, which holds up the writers. It writes to a table of its own, too. https://litestream.io/how-it-works/
 *
 * After each look it prints a line of JSON.
 */
import { readFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as wait } from 'node:timers/promises';

/** What it has seen and done so far. */
export interface ReplicatorState {
  /** Of the file of the log, now. */
  logBytes: number;
  /** How often it saw the log begun anew. */
  rounds: number;
  checkpoints: number;
}

const PAGE_BYTES = 4096;
const LOOK_INTERVAL_MS = 20;

const [path = '', mode, pages] = process.argv.slice(2);
const database = new DatabaseSync(path, { timeout: 1_000 });
database.exec('PRAGMA wal_autocheckpoint = 0; CREATE TABLE IF NOT EXISTS _replicator (seq INTEGER)');
const state: ReplicatorState = { logBytes: 0, rounds: 0, checkpoints: 0 };
let salt = '';

function beginReading(): void {
  database.exec('BEGIN');
  database.prepare('SELECT count(*) FROM _replicator').get();
}

/** The log begins with a head of 32 bytes, and has another salt in each round: https://sqlite.org/walformat.html */
function readLog(): void {
  const log = readFileSync(`${path}-wal`);
  state.logBytes = log.length;
  const found = log.subarray(16, 24).toString('hex');
  if (found !== salt) state.rounds++;
  salt = found;
}

function checkpoint(): void {
  database.exec('COMMIT');
  database.prepare(`PRAGMA wal_checkpoint(${mode})`).get();
  database.exec('DELETE FROM _replicator; INSERT INTO _replicator VALUES (1)');
  state.checkpoints++;
  beginReading();
}

beginReading();
for (;;) {
  readLog();
  if (state.logBytes >= Number(pages) * PAGE_BYTES) checkpoint();
  console.log(JSON.stringify(state));
  await wait(LOOK_INTERVAL_MS);
}
