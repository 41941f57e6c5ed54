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
