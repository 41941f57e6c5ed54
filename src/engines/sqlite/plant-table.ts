import type { DatabaseSync } from 'node:sqlite';
import { isIntact, revisionChecksum } from '../../core/commit/checksum.ts';
import type { PlantWrite, RepeatedIdRule } from '../../core/commit/plant-commits.ts';
import { REVISION_COLUMNS, type Row, revisionOf } from '../revision-rows.ts';
import { rejectSchema } from '../schema-faults.ts';
import { type BatchResults, RESULTS } from './packed-batch.ts';
import { AS_ROWS } from './queries.ts';
import { inTransaction, schemaFaults } from './writing-database.ts';

const CREATED = RESULTS.indexOf('created');
const UNCHANGED = RESULTS.indexOf('unchanged');
const REVISED = RESULTS.indexOf('revised');
const ID_TAKEN = RESULTS.indexOf('idTaken');
const DAMAGED = RESULTS.indexOf('damaged');

export type PlantTable = ReturnType<typeof plantTable>;

export function plantTable(database: DatabaseSync, repeatedIdRule: RepeatedIdRule) {
  // Most ids are new, so the first revision is inserted without a lookup. The table has no rowid:
  // node:sqlite would throw on a `lastInsertRowid` beyond 2^53 after the insert.
  const insertFirst = database.prepare(
    'INSERT INTO plant_revision VALUES (?, 1, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING',
  );
  const insertNext = database.prepare('INSERT INTO plant_revision VALUES (?, ?, ?, ?, ?, ?, ?)');
  const selectLatest = database.prepare(
    `SELECT ${REVISION_COLUMNS} FROM plant_revision WHERE id = ? ORDER BY revision DESC LIMIT 1`,
    AS_ROWS,
  );
  const schemaVersion = database.prepare('PRAGMA schema_version');
  /** The version of the schema that was checked last. It changes with the schema. */
  let checkedVersion: unknown;

  /** Checks the schema, if it was changed since the last check. @throws {StoreRejected} */
  const checkSchema = (): void => {
    const version = schemaVersion.get()!.schema_version;
    if (version === checkedVersion) return;
    rejectSchema(schemaFaults(database));
    checkedVersion = version;
  };

  const write = ({ plant, contentChecksum, recordedBy }: PlantWrite, recordedAt: number) => {
    const { id, name, tag = null } = plant;
    const checksumOf = (revision: number): bigint =>
      revisionChecksum(contentChecksum, { revision, recordedAt, recordedBy });
    if (insertFirst.run(id, name, tag, recordedAt, recordedBy, checksumOf(1)).changes === 1)
      return { outcome: CREATED, revision: 1 };
    const latest = revisionOf(selectLatest.get(id) as unknown as Row);
    if (!isIntact(latest)) return { outcome: DAMAGED, revision: 0 };
    if (latest.plant.name === name && (latest.plant.tag ?? null) === tag)
      return { outcome: UNCHANGED, revision: latest.revision };
    if (repeatedIdRule === 'reject') return { outcome: ID_TAKEN, revision: 0 };
    const revision = latest.revision + 1;
    insertNext.run(id, revision, name, tag, recordedAt, recordedBy, checksumOf(revision));
    return { outcome: REVISED, revision };
  };

  /** Writes a batch in order, in one transaction. It returns after the flush of the commit. */
  const commit = (writes: readonly PlantWrite[]): BatchResults => {
    const recordedAt = Date.now();
    const results: BatchResults = { outcomes: [], revisions: [], flushMs: 0 };
    let writtenAt = 0;
    inTransaction(database, () => {
      // The check runs in the transaction, so the schema cannot change before the commit.
      checkSchema();
      for (const each of writes) {
        const { outcome, revision } = write(each, recordedAt);
        results.outcomes.push(outcome);
        results.revisions.push(revision);
      }
      writtenAt = performance.now();
    });
    results.flushMs = performance.now() - writtenAt;
    return results;
  };

  return { checkSchema, commit };
}
