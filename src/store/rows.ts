/** What the tables of both engines have in common. */
import { TOKEN_EXPIRY_MS_MAX } from '../contract/limits.ts';
import { type PlantRevision, StoreRejected } from './plant-store.ts';

/** The columns of `plant_revision`, in the order in which they are written and read. */
export const REVISION_COLUMNS = 'id, revision, name, tag, recorded_at, recorded_by, checksum';

/** Numbers are text or bigint. */
export type Row = (string | bigint | null)[];

/** @param row contains the {@link REVISION_COLUMNS} */
export function revisionOf(row: Readonly<Row>): PlantRevision {
  const [id, revision, name, tag, recordedAt, recordedBy, checksum] = row;
  const plant = { id: integer(id), name: text(name) };
  return {
    plant: tag === null ? plant : { ...plant, tag: text(tag) },
    revision: number(revision),
    recordedAt: number(recordedAt),
    recordedBy: number(recordedBy),
    checksum: integer(checksum),
  };
}

/**
 * A value of a damaged row of SQLite may have any type. It is read as 0 or as an empty text. Then
 * the checksum of the row is wrong, unless that was the value.
 */
function integer(value: unknown): bigint {
  try {
    return BigInt(value as bigint);
  } catch {
    return 0n;
  }
}

function number(value: unknown): number {
  const integer = Number(value);
  return Number.isInteger(integer) ? integer : 0;
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/**
 * Change numbers are in the order of the commits, so a reader that reads in pages misses no change.
 * SQLite has one writer at a time. In PostgreSQL the numbers are unique. Of two concurrent changes
 * one waits for the commit of the other, fails, and is retried with the next number.
 */
export const NEXT_CHANGE_NUMBER = '(SELECT coalesce(max(change_number), 0) + 1 FROM token)';

/** The expiry of a token. Beyond the last time of a Date it is read as null: it never comes. */
export const TOKEN_EXPIRY = `CASE WHEN expires_at <= ${TOKEN_EXPIRY_MS_MAX} THEN expires_at END`;

/**
 * The last clause of the INSERT with which `copy` updates a token that the target already has.
 *
 * It changes no row when the hash or the label differs (another token), and never undoes a
 * revocation. `last_used_day` alone gets no change number, because services need not see it.
 */
export const UPDATE_COPIED_TOKEN = `
  ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at, revoked_at = excluded.revoked_at,
    last_used_day = excluded.last_used_day,
    change_number = CASE WHEN token.expires_at IS DISTINCT FROM excluded.expires_at
      OR token.revoked_at IS DISTINCT FROM excluded.revoked_at THEN excluded.change_number ELSE token.change_number END
  WHERE token.hash = excluded.hash AND token.label = excluded.label
    AND (token.revoked_at IS NULL OR excluded.revoked_at IS NOT NULL)`;

/**
 * Compares the schema that the schema steps make with the one found. A trigger, for example, could
 * delete or change each new plant.
 *
 * @param ours the definition of each item, such as a trigger, by its name
 * @returns one text for each difference
 */
export function schemaFaultsOf(ours: Map<string, string>, found: Map<string, string>): string[] {
  return [...new Set([...ours.keys(), ...found.keys()])].flatMap(item => {
    if (!found.has(item)) return [`the ${item} is missing`];
    if (!ours.has(item)) return [`the ${item} is not part of the schema`];
    return ours.get(item) === found.get(item) ? [] : [`the ${item} was changed`];
  });
}

/** @throws {StoreRejected} when there is a difference */
export function rejectSchema(faults: string[]): void {
  const advice = 'undo this, or move the plants into a new store with `npx plant-store copy`';
  if (faults.length > 0) throw new StoreRejected(`${faults.join(', ')}; ${advice}`);
}
