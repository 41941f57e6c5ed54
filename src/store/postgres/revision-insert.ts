import type { Statement, TextRow } from './connection.ts';

/** A revision as it is written. */
export interface NewRevision {
  id: bigint;
  revision: number;
  name: string;
  tag: string | null;
  recordedAt: number;
  recordedBy: number;
}

/** The columns of `plant_revision`, in the order in which they are written and read. */
export const REVISION_COLUMNS = 'id, revision, name, tag, recorded_at, recorded_by';
const COLUMN_COUNT = 6;

/** A revision as the server sends it when asked for {@link REVISION_COLUMNS}. */
export function rowOf({ id, revision, name, tag, recordedAt, recordedBy }: NewRevision): TextRow {
  return [String(id), String(revision), name, tag, String(recordedAt), String(recordedBy)];
}

/**
 * Inserts revisions, none of them twice and none over another; answers with the ids of those that were inserted.
 *
 * One statement form for every engine: distributed ones take many rows of `VALUES` in one go, where a select from
 * arrays is pulled to the coordinator first (measured on Citus: 8 ms against 119 ms for 100 rows).
 *
 * The statement is prepared for a few numbers of rows only, since parsing it costs as much as carrying it out; the
 * rows that are missing to the next one repeat the one with the least text, which conflicts with itself and so changes
 * nothing.
 */
export function revisionInsert(rows: readonly NewRevision[]): Statement {
  const count = preparedCount(rows.length);
  const values = new Array<unknown>(count * COLUMN_COUNT);
  const filler = count === rows.length ? undefined : shortest(rows);
  for (let row = 0; row < count; row++) {
    const { id, revision, name, tag, recordedAt, recordedBy } = rows[row] ?? filler!;
    const offset = row * COLUMN_COUNT;
    values[offset] = id;
    values[offset + 1] = revision;
    values[offset + 2] = name;
    values[offset + 3] = tag;
    values[offset + 4] = recordedAt;
    values[offset + 5] = recordedBy;
  }
  return { name: `insert_${count}`, text: insertText(count), values };
}

function shortest(rows: readonly NewRevision[]): NewRevision {
  const length = ({ name, tag }: NewRevision): number => name.length + (tag?.length ?? 0);
  return rows.reduce((least, row) => (length(row) < length(least) ? row : least));
}

/** 1, 2, 3, 4, 6, 8, 12, 16, 24, …: at most half as many again as there are. */
function preparedCount(rowCount: number): number {
  let count = 1;
  while (count < rowCount) count *= 2;
  const between = (count / 4) * 3;
  return Number.isInteger(between) && between >= rowCount ? between : count;
}

const texts = new Map<number, string>();

function insertText(rowCount: number): string {
  let text = texts.get(rowCount);
  if (text === undefined) {
    const rows = Array.from({ length: rowCount }, (_, row) => {
      const first = row * COLUMN_COUNT + 1;
      return `(${Array.from({ length: COLUMN_COUNT }, (_, column) => `$${first + column}`).join(', ')})`;
    });
    text = `INSERT INTO plant_revision (${REVISION_COLUMNS})
      VALUES ${rows.join(', ')} ON CONFLICT (id, revision) DO NOTHING RETURNING id`;
    texts.set(rowCount, text);
  }
  return text;
}
