import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { PlantWrite, RepeatedIdRule, WriteResult } from '../../core/commit/plant-commits.ts';
import type { IntactRevision } from '../../core/commit/plant-revision.ts';
import {
  decide,
  type LatestRevision,
  mayBeFirst,
  nextRevision,
  storedResult,
} from '../../core/commit/write-decision.ts';
import { rejectSchema } from '../store-rejections.ts';
import { revisionOf } from '../tables/revision-rows.ts';
import type { Row } from '../tables/table-access.ts';
import { inTransaction, latestRevisionOf } from './queries.ts';
import { schemaFaults } from './schema.ts';

/** A batch after its commit. */
export interface CommittedBatch {
  /** One result for each write, in their order. */
  results: WriteResult[];
  /** Duration of the COMMIT, which includes the flush, in ms. */
  flushMs: number;
}

/** The table has no rowid: node:sqlite would throw on a `lastInsertRowid` beyond 2^53. */
const INSERT = 'INSERT INTO plant_revision VALUES (?, ?, ?, ?, ?, ?, ?)';
/** Inserts nothing if there is a revision with this id and number. */
export const INSERT_IF_ABSENT = `${INSERT} ON CONFLICT DO NOTHING`;

/** Writes plants on one connection. */
export class RevisionTable {
  readonly #database: DatabaseSync;
  readonly #repeatedIdRule: RepeatedIdRule;
  /** Inserts nothing if the plant has a first revision. */
  readonly #insertFirst: StatementSync;
  readonly #insertNext: StatementSync;
  readonly #selectLatest: StatementSync;
  readonly #schemaVersion: StatementSync;
  /** The version of the schema that was checked last. It changes with the schema. */
  #checkedVersion: unknown;

  constructor(database: DatabaseSync, repeatedIdRule: RepeatedIdRule) {
    this.#database = database;
    this.#repeatedIdRule = repeatedIdRule;
    this.#insertFirst = database.prepare(INSERT_IF_ABSENT);
    this.#insertNext = database.prepare(INSERT);
    this.#selectLatest = latestRevisionOf(database);
    this.#schemaVersion = database.prepare('PRAGMA schema_version');
  }

  /** Checks the schema, if it was changed since the last check. @throws {StoreRejected} */
  checkSchema(): void {
    const version = this.#schemaVersion.get()!.schema_version;
    if (version === this.#checkedVersion) return;
    rejectSchema(schemaFaults(this.#database));
    this.#checkedVersion = version;
  }

  /** Writes a batch in order, in one transaction. It returns after the flush of the commit. */
  commit(writes: readonly PlantWrite[]): CommittedBatch {
    const recordedAt = Date.now();
    const results: WriteResult[] = [];
    let writtenAt = 0;
    inTransaction(this.#database, () => {
      // The check runs in the transaction, so the schema cannot change before the commit.
      this.checkSchema();
      for (const write of writes) results.push(this.#write(write, recordedAt));
      writtenAt = performance.now();
    });
    return { results, flushMs: performance.now() - writtenAt };
  }

  #write(write: PlantWrite, recordedAt: number): WriteResult {
    if (mayBeFirst(write)) {
      const first = nextRevision(write, undefined, recordedAt);
      if (insertRevision(this.#insertFirst, first) === 1) return storedResult(first);
    }
    const decision = decide(write, this.#latestOf(write.plant.id), this.#repeatedIdRule, recordedAt);
    if (decision.kind === 'result') return decision.result;
    insertRevision(this.#insertNext, decision.revision);
    return storedResult(decision.revision);
  }

  #latestOf(id: bigint): LatestRevision {
    const row = this.#selectLatest.get(id) as unknown as Row | undefined;
    return row === undefined ? { kind: 'none' } : { kind: 'stored', stored: revisionOf(row) };
  }
}

/** @returns the number of inserted rows */
export function insertRevision(statement: StatementSync, inserted: IntactRevision): number | bigint {
  const { plant, revision, recordedAt, recordedBy, checksum } = inserted;
  const { id, name, tag = null } = plant;
  return statement.run(id, revision, name, tag, recordedAt, recordedBy, checksum).changes;
}
