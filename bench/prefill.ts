import { contentChecksum, revisionChecksum } from '../src/core/commit/checksum.ts';
import { openForWriting } from '../src/engines/sqlite/writing-database.ts';

/** The number of rows that are sorted and inserted together. */
const PASS_ROWS = 1_000_000;
/** The range of random ids in create-requests.lua; the maximum is exclusive. */
const ID_MIN = 10n ** 18n;
const ID_MAX = 922n * 10n ** 16n;

/**
 * Fills a plant store with random ids. Each pass touches every page of the table, so the pages are
 * as full as after inserts one by one.
 *
 * @param path the database file, which is created if it is missing
 */
export function prefillStore(path: string, rows: number): void {
  const { database } = openForWriting(path);
  // No plant is confirmed here, and the last checkpoint flushes all data.
  database.exec('PRAGMA synchronous = OFF; PRAGMA cache_size = -2000000; PRAGMA wal_autocheckpoint = 100000');
  database.exec(
    `INSERT OR IGNORE INTO token (hash, label, created_at, change_number)
     SELECT 'prefill', 'prefill', ${Date.now()}, coalesce(max(change_number), 0) + 1 FROM token`,
  );
  const insert = database.prepare(
    `INSERT INTO plant_revision (id, revision, name, tag, recorded_at, recorded_by, checksum)
     VALUES (?, 1, ?, ?, ?, ?, ?)`,
  );
  const { id: token } = database.prepare(`SELECT id FROM token WHERE hash = 'prefill'`).get()!;
  const nextId = randomIds();
  for (let filled = 0; filled < rows; filled += PASS_ROWS) {
    const ids = BigInt64Array.from({ length: Math.min(PASS_ROWS, rows - filled) }, nextId).sort();
    database.exec('BEGIN');
    for (const id of ids) {
      const plant = { id, name: `Monstera deliciosa ${String(id).slice(-16)}`, tag: 'houseplant' };
      const [recordedAt, recordedBy] = [Date.now(), Number(token)];
      const checksum = revisionChecksum(contentChecksum(plant), { revision: 1, recordedAt, recordedBy });
      insert.run(id, plant.name, plant.tag, recordedAt, recordedBy, checksum);
    }
    database.exec('COMMIT');
  }
  database.exec('PRAGMA synchronous = FULL; PRAGMA wal_checkpoint(TRUNCATE)');
  database.close();
}

/** SplitMix64 (Steele, Lea, Flood 2014): fast, the same in each run, and without repeated ids. */
function randomIds(): () => bigint {
  let state = 1n;
  return () => {
    state = BigInt.asUintN(64, state + 0x9e3779b97f4a7c15n);
    let mixed = state;
    mixed = BigInt.asUintN(64, (mixed ^ (mixed >> 30n)) * 0xbf58476d1ce4e5b9n);
    mixed = BigInt.asUintN(64, (mixed ^ (mixed >> 27n)) * 0x94d049bb133111ebn);
    return ID_MIN + ((mixed ^ (mixed >> 31n)) % (ID_MAX - ID_MIN));
  };
}
