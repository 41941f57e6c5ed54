import { join } from 'node:path';
import { openForWriting } from '../../src/store/sqlite/database.ts';

/**
 * The floor under the plant store on SQLite: inserts into its table in batches, a flushed commit each, with no server
 * and no thread around them.
 *
 *   node bench/floors/batch-inserts.ts FOLDER SECONDS
 *
 * Prints rows a second as JSON.
 */
const [folder, seconds] = process.argv.slice(2);
/** As many as wait at once under a load of 64 connections. */
const BATCH_ROWS = 64;

const database = openForWriting(join(folder!, 'plants.db'));
// As in the service, whose commits copy no log.
database.exec('PRAGMA wal_autocheckpoint = 50000');
const insert = database.prepare(
  `INSERT INTO plant_revision (id, revision, name, tag, recorded_at, recorded_by)
   VALUES (?, 1, ?, 'houseplant', ?, 1)`,
);
let id = Date.now() * 1000;
let rows = 0;
const startMs = performance.now();
const endMs = startMs + Number(seconds) * 1000;
while (performance.now() < endMs) {
  database.exec('BEGIN IMMEDIATE');
  for (let row = 0; row < BATCH_ROWS; row++) insert.run(++id, `Monstera deliciosa ${id}`, Date.now());
  database.exec('COMMIT');
  rows += BATCH_ROWS;
}
console.log(JSON.stringify({ rowsPerSecond: (rows * 1000) / (performance.now() - startMs) }));
database.close();
