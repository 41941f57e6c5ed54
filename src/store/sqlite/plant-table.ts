import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { isIntact, revisionChecksum } from '../checksum.ts';
import type { RepeatedIdRule } from '../plant-store.ts';
import { REVISION_COLUMNS, type Row, revisionOf } from '../rows.ts';
import { type Batch, type BatchResults, RESULTS } from './batch.ts';
import { inTransaction } from './database.ts';

const CREATED = RESULTS.indexOf('created');
const UNCHANGED = RESULTS.indexOf('unchanged');
const REVISED = RESULTS.indexOf('revised');
const ID_TAKEN = RESULTS.indexOf('idTaken');
const DAMAGED = RESULTS.indexOf('damaged');

/** Writes batches of plants to the table of revisions. */
export class PlantTable {
  readonly #database: DatabaseSync;
  readonly #repeatedIdRule: RepeatedIdRule;
  readonly #insertFirst: StatementSync;
  readonly #insertNext: StatementSync;
  readonly #selectLatest: StatementSync;

  constructor(database: DatabaseSync, repeatedIdRule: RepeatedIdRule) {
    this.#database = database;
    this.#repeatedIdRule = repeatedIdRule;
    // Most ids are new, so the first revision is inserted without a lookup. The table has no rowid:
    // node:sqlite would throw on a `lastInsertRowid` beyond 2^53 after the insert.
    this.#insertFirst = database.prepare(
      'INSERT INTO plant_revision VALUES (?, 1, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING',
    );
    this.#insertNext = database.prepare('INSERT INTO plant_revision VALUES (?, ?, ?, ?, ?, ?, ?)');
    this.#selectLatest = database.prepare(
      `SELECT ${REVISION_COLUMNS} FROM plant_revision WHERE id = ? ORDER BY revision DESC LIMIT 1`,
    );
    this.#selectLatest.setReadBigInts(true);
    this.#selectLatest.setReturnArrays(true);
  }

  /**
   * Writes a batch in order, in one transaction. It returns after the flush of the commit.
   *
   * @throws any error of SQLite; then no plant of the batch is visible
   */
  commit(batch: Batch): BatchResults {
    const recordedAt = Date.now();
    const results: BatchResults = {
      outcomes: new Uint8Array(batch.names.length),
      revisions: new Uint32Array(batch.names.length),
      flushMs: 0,
    };
    let writtenAt = 0;
    inTransaction(this.#database, () => {
      for (let index = 0; index < batch.names.length; index++) {
        this.#write(batch, index, recordedAt, results);
      }
      writtenAt = performance.now();
    });
    results.flushMs = performance.now() - writtenAt;
    return results;
  }

  #write(batch: Batch, index: number, recordedAt: number, results: BatchResults): void {
    const id = batch.ids[index]!;
    const name = batch.names[index]!;
    const tag = batch.tags[index]!;
    const recordedBy = batch.recordedBy[index]!;
    const content = batch.contentChecksums[index]!;
    const checksum = revisionChecksum(content, { revision: 1, recordedAt, recordedBy });
    if (this.#insertFirst.run(id, name, tag, recordedAt, recordedBy, checksum).changes === 1) {
      results.outcomes[index] = CREATED;
      results.revisions[index] = 1;
      return;
    }
    const latest = revisionOf(this.#selectLatest.get(id) as unknown as Row);
    if (!isIntact(latest)) {
      results.outcomes[index] = DAMAGED;
    } else if (latest.plant.name === name && (latest.plant.tag ?? null) === tag) {
      results.outcomes[index] = UNCHANGED;
      results.revisions[index] = latest.revision;
    } else if (this.#repeatedIdRule === 'reject') {
      results.outcomes[index] = ID_TAKEN;
    } else {
      const next = latest.revision + 1;
      const nextChecksum = revisionChecksum(content, { revision: next, recordedAt, recordedBy });
      results.outcomes[index] = REVISED;
      results.revisions[index] = next;
      this.#insertNext.run(id, next, name, tag, recordedAt, recordedBy, nextChecksum);
    }
  }
}
