import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import { batchLimiter, textLengthOf } from '../../../core/commit/batch-size.ts';
import { isIntact } from '../../../core/commit/checksum.ts';
import type { PlantRevision } from '../../../core/commit/plant-revision.ts';
import { StoreDamaged } from '../../../core/commit/store-errors.ts';
import { keyOrder, REVISION_COLUMNS, revisionName, revisionOf } from '../../tables/revision-rows.ts';
import type { Row } from '../../tables/table-access.ts';
import { AS_ROWS, latestRevisionOf } from '../queries.ts';

/** Rows of one slice of {@link revisionsInSlices}. It may have one row more. */
const SLICE_ROWS = 2_048;
/** Text of one slice, in UTF-16 code units. */
const SLICE_TEXT_LENGTH = 4 * 1024 * 1024;

/** The revisions come from one statement, so from one snapshot. */
export function revisionsIn(database: DatabaseSync, from?: bigint): Iterable<PlantRevision> {
  // Without `from` there is no condition: a damaged key may misdirect a search for the smallest id.
  return from === undefined ? select(database, '') : select(database, 'WHERE id >= ?', from);
}

function* select(
  database: DatabaseSync,
  where: string,
  ...values: SQLInputValue[]
): Generator<PlantRevision> {
  const text = `SELECT ${REVISION_COLUMNS} FROM plant_revision ${where} ORDER BY id, revision`;
  const rows: Iterable<unknown> = database.prepare(text, AS_ROWS).iterate(...values);
  for (const row of rows) yield revisionOf(row as Row);
}

/**
 * Each slice has a statement of its own, which ends before the caller uses the slice. The next
 * slice begins with the last row of this one, which is intact: the key of a damaged row may be
 * wrong. If that row is not found by its key, the rows behind it would not be found either.
 */
export function* revisionsInSlices(database: DatabaseSync, from?: bigint): Generator<PlantRevision> {
  let rows = revisionsIn(database, from);
  for (let last: PlantRevision | undefined; ; ) {
    const { slice, isEnd } = nextSlice(rows);
    const first = last && slice.shift();
    if (last !== undefined && (first === undefined || keyOrder(first, last) !== 0))
      throw new StoreDamaged(`${revisionName(last)} is not found by its key`);
    yield* slice;
    if (isEnd) return;
    last = slice.at(-1)!;
    rows = select(database, 'WHERE (id, revision) >= (?, ?)', last.plant.id, last.revision);
  }
}

function nextSlice(rows: Iterable<PlantRevision>): { slice: PlantRevision[]; isEnd: boolean } {
  const slice: PlantRevision[] = [];
  const addIfFits = batchLimiter(SLICE_ROWS, SLICE_TEXT_LENGTH);
  for (const row of rows) {
    slice.push(row);
    if (!addIfFits(textLengthOf(row.plant)) && isIntact(row)) return { slice, isEnd: false };
  }
  return { slice, isEnd: true };
}

/** Each id has a statement of its own, so none holds a snapshot for longer than one search. */
export function latestRevisions(database: DatabaseSync, ids: readonly bigint[]): PlantRevision[] {
  const statement = latestRevisionOf(database);
  return ids
    .map(id => statement.get(id) as unknown as Row | undefined)
    .filter(row => row !== undefined)
    .map(revisionOf);
}
