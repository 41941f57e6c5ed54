/** Parts of the statements on the tokens, the same for both engines. */
import { TOKEN_EXPIRY_MS_MAX } from '../contract/limits.ts';

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
