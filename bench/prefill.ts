import { openForWriting } from '../src/store/sqlite/database.ts';

/** Rows that are sorted and inserted together. */
const PASS_ROWS = 1_000_000;
/** What a load with random ids sends is from 10^18 to below this, see create-requests.lua. */
const ID_MIN = 10n ** 18n;
const ID_MAX = 922n * 10n ** 16n;

/**
 * Fills a plant store with plants under random ids, as it would be after it took them one after the other: each pass
 * touches every page of the table, so the pages are as full as those of a table that grew at random.
 *
 * @param path of the database file; made when there is none
 */
export function prefillStore(path: string, rows: number): void {
  const database = openForWriting(path);
  // Nothing here was promised to anyone; the last checkpoint flushes it all.
  database.exec('PRAGMA synchronous = OFF; PRAGMA cache_size = -2000000; PRAGMA wal_autocheckpoint = 100000');
  database.exec(
    `INSERT OR IGNORE INTO token (hash, label, created_at, change_number)
     SELECT 'prefill', 'prefill', ${Date.now()}, coalesce(max(change_number), 0) + 1 FROM token`,
  );
  const insert = database.prepare(
    `INSERT INTO plant_revision (id, revision, name, tag, recorded_at, recorded_by)
     VALUES (?, 1, ?, 'houseplant', ?, ?)`,
  );
  const { id: token } = database.prepare(`SELECT id FROM token WHERE hash = 'prefill'`).get()!;
  const nextId = randomIds();
  for (let filled = 0; filled < rows; filled += PASS_ROWS) {
    const ids = BigInt64Array.from({ length: Math.min(PASS_ROWS, rows - filled) }, nextId).sort();
    database.exec('BEGIN');
    for (const id of ids) insert.run(id, `Monstera deliciosa ${String(id).slice(-16)}`, Date.now(), token!);
    database.exec('COMMIT');
  }
  database.exec('PRAGMA synchronous = FULL; PRAGMA wal_checkpoint(TRUNCATE)');
  database.close();
}

/** SplitMix64 (Steele, Lea, Flood 2014): quick, the same ids each time, and none twice within what a store holds. */
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
