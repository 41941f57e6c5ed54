import type { StoredToken, TokenGroup } from '../../core/tokens/stored-token.ts';
import {
  TOKEN_EXPIRY_MAX_MS,
  TOKEN_GROUP_SIZE,
  TOKENS_AT_A_TIME_MAX,
} from '../../core/tokens/stored-token.ts';
import { isInteger, numberOf, type Query, type Row, textOf } from './table-access.ts';

/** The columns of `token` for {@link tokenOf}. */
export const TOKEN_COLUMNS =
  'id, hash, label, created_at, expires_at, revoked_at, last_used_day, change_number';

/** The next unique number. In PostgreSQL, one of two concurrent changes fails, and is retried. */
export const NEXT_CHANGE_NUMBER = '(SELECT coalesce(max(change_number), 0) + 1 FROM token)';

/**
 * Gives a token the state that it has in the source of a copy. It changes nothing when the hash or
 * the label differs (another token), or when it would undo a revocation. `last_used_day` alone gets
 * no change number, because services need not see it.
 */
export const PUT_TOKEN = `
  INSERT INTO token (id, hash, label, created_at, expires_at, revoked_at, last_used_day, change_number)
  VALUES ($1, $2, $3, $4, $5, $6, $7, ${NEXT_CHANGE_NUMBER})
  ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at, revoked_at = excluded.revoked_at,
    last_used_day = excluded.last_used_day,
    change_number = CASE WHEN token.expires_at IS DISTINCT FROM excluded.expires_at
      OR token.revoked_at IS DISTINCT FROM excluded.revoked_at THEN excluded.change_number ELSE token.change_number END
  WHERE token.hash = excluded.hash AND token.label = excluded.label
    AND (token.revoked_at IS NULL OR excluded.revoked_at IS NOT NULL)`;

export function putValues(token: StoredToken): unknown[] {
  const { id, hash, label, createdAt, expiresAt, revokedAt, lastUsedDay } = token;
  return [id, hash, label, createdAt, expiresAt, revokedAt, lastUsedDay];
}

/**
 * Reads a row, which may be damaged: then SQLite may find a value of any type in any column.
 *
 * No token becomes valid by such a value. An empty hash is the hash of no token, the expiry 0 has
 * passed, and a revocation at the time 0 is a revocation.
 */
export function tokenOf(row: Readonly<Row>): StoredToken {
  const [id, hash, label, createdAt, expiresAt, revokedAt, lastUsedDay, changeNumber] = row;
  return {
    id: numberOf(id),
    hash: textOf(hash),
    label: textOf(label),
    createdAt: numberOf(createdAt),
    expiresAt: expiresAt === null ? null : expiryOf(expiresAt!),
    revokedAt: revokedAt === null ? null : numberOf(revokedAt),
    lastUsedDay: lastUsedDay === null ? null : textOf(lastUsedDay),
    changeNumber: numberOf(changeNumber),
  };
}

/**
 * Another program may have written an integer that no Date can have, for a token that never expires.
 * A value of another type is read as 0.
 */
function expiryOf(value: Row[number]): number | null {
  if (!isInteger(value)) return 0;
  const time = numberOf(value);
  return time <= TOKEN_EXPIRY_MAX_MS ? time : null;
}

/**
 * The tokens of a group, as `tokenGroupOf` numbers them.
 *
 * @param digest SQL that computes the fingerprint of the tokens, if the engine does so
 */
export async function tokensOfGroup(query: Query, group: number, digest?: string): Promise<TokenGroup> {
  const first = group * TOKEN_GROUP_SIZE;
  const where = 'FROM token WHERE id BETWEEN $1 AND $2';
  // One statement reads both from one snapshot.
  const fingerprint = digest === undefined ? '' : `, (SELECT ${digest} ${where})`;
  const text = `SELECT ${TOKEN_COLUMNS}${fingerprint} ${where}`;
  const rows = await query(text, [first, first + TOKEN_GROUP_SIZE - 1]);
  // Only a group without tokens has an empty fingerprint.
  const own = digest === undefined ? undefined : textOf(rows[0]?.at(-1) ?? '');
  return { tokens: rows.map(tokenOf), fingerprint: own };
}

/** Every token, in the order of ids. Each statement is short: on SQLite it delays plants. */
export async function allTokens(query: Query): Promise<StoredToken[]> {
  const tokens: StoredToken[] = [];
  for (;;) {
    const text = `SELECT ${TOKEN_COLUMNS} FROM token WHERE id > $1 ORDER BY id LIMIT ${TOKENS_AT_A_TIME_MAX}`;
    const page = await query(text, [tokens.at(-1)?.id ?? 0]);
    tokens.push(...page.map(tokenOf));
    if (page.length < TOKENS_AT_A_TIME_MAX) return tokens;
  }
}
