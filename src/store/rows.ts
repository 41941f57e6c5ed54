/** What the tables of both engines have alike. */
import type { PlantRevision } from './plant-store.ts';

/** The columns of `plant_revision`, in the order in which they are written and read. */
export const REVISION_COLUMNS = 'id, revision, name, tag, recorded_at, recorded_by';

/** @param row the {@link REVISION_COLUMNS}, numbers as text or as bigint */
export function revisionOf(row: readonly (string | bigint | null)[]): PlantRevision {
  type Row = [bigint, bigint, string, string | null, bigint, bigint];
  const [id, revision, name, tag, recordedAt, recordedBy] = row as Row;
  return {
    plant: tag === null ? { id: BigInt(id), name } : { id: BigInt(id), name, tag },
    revision: Number(revision),
    recordedAt: Number(recordedAt),
    recordedBy: Number(recordedBy),
  };
}

/**
 * These numbers are in the order of the commits, so a read in pages misses no change. In SQLite writers take turns. In
 * PostgreSQL one of two changes at the same time waits for the other's commit, fails, as the numbers are unique, and takes
 * the next one.
 */
export const NEXT_CHANGE_NUMBER = '(SELECT coalesce(max(change_number), 0) + 1 FROM token)';

/**
 * What `copy` does on every engine with a token that the target has already, as the last clause of the INSERT. Another hash
 * or label is another token, and a revocation is not undone. The day of the last use alone is no change that services must see.
 */
export const UPDATE_COPIED_TOKEN = `
  ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at, revoked_at = excluded.revoked_at,
    last_used_day = excluded.last_used_day,
    change_number = CASE WHEN token.expires_at IS DISTINCT FROM excluded.expires_at
      OR token.revoked_at IS DISTINCT FROM excluded.revoked_at THEN excluded.change_number ELSE token.change_number END
  WHERE token.hash = excluded.hash AND token.label = excluded.label
    AND (token.revoked_at IS NULL OR excluded.revoked_at IS NOT NULL)`;
