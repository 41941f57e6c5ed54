import { TOKENS_AT_A_TIME_MAX } from '../../contract/limits.ts';
import type { NewStoredToken, StoredToken } from '../../contract/stored-token.ts';
import { NEXT_CHANGE_NUMBER, TOKEN_EXPIRY, UPDATE_COPIED_TOKEN } from '../token-sql.ts';
import type { Connection, TextRow } from './connection.ts';
import { sqlStateOf, UNIQUE_VIOLATION } from './failure.ts';

const COLUMNS = `id, hash, label, created_at, ${TOKEN_EXPIRY}, revoked_at, last_used_day, change_number`;
const NEXT_ID = '(SELECT coalesce(max(id), 0) + 1 FROM token)';

/** @returns the stored token, or undefined when its label is taken */
export async function createToken(
  connection: Connection,
  token: NewStoredToken,
): Promise<StoredToken | undefined> {
  for (;;) {
    try {
      const [row] = await connection.commit({
        text: `INSERT INTO token (id, hash, label, created_at, expires_at, change_number)
          VALUES (${NEXT_ID}, $1, $2, $3, $4, ${NEXT_CHANGE_NUMBER}) RETURNING ${COLUMNS}`,
        values: [token.hash, token.label, token.createdAt, token.expiresAt],
      });
      return storedToken(row!);
    } catch (error) {
      if (sqlStateOf(error) !== UNIQUE_VIOLATION) throw error;
      const existing = await tokenWithLabel(connection, token.label);
      // The same hash: an earlier attempt was stored, but its result was lost.
      if (existing !== undefined) return existing.hash === token.hash ? existing : undefined;
      if ((error as { constraint?: string }).constraint === 'token_hash_key') return undefined;
    }
  }
}

/** The next tokens created or revoked after this change number, in the order of the changes. */
export function tokensChangedSince(connection: Connection, changeNumber: number): Promise<StoredToken[]> {
  const clauses = 'WHERE change_number > $1 ORDER BY change_number LIMIT $2';
  return select(connection, clauses, [changeNumber, TOKENS_AT_A_TIME_MAX]);
}

/** @returns a digest of all columns that decide whether a token is valid */
export async function tokensFingerprint(connection: Connection): Promise<string> {
  const [row] = await connection.run({
    name: 'tokens_fingerprint',
    text: `SELECT md5(string_agg(
        hash || ' ' || change_number::text || ' ' || coalesce(expires_at::text, '') || ' ' || coalesce(revoked_at::text, ''),
        ' ' ORDER BY change_number
      )) FROM token`,
  });
  return row?.[0] ?? 'no token';
}

/** Revokes a token permanently. A token that is already revoked does not change. */
export async function revokeToken(
  connection: Connection,
  label: string,
  revokedAt: number,
): Promise<StoredToken | undefined> {
  for (;;) {
    try {
      await connection.commit({
        text: `UPDATE token SET revoked_at = $1, change_number = ${NEXT_CHANGE_NUMBER}
          WHERE label = $2 AND revoked_at IS NULL`,
        values: [revokedAt, label],
      });
      return await tokenWithLabel(connection, label);
    } catch (error) {
      if (sqlStateOf(error) !== UNIQUE_VIOLATION) throw error;
    }
  }
}

/** Stores the day of the last use. Every instance does so; the first write suffices. */
export async function recordTokenUse(connection: Connection, tokenIds: number[], day: string): Promise<void> {
  await connection.run({
    text: `UPDATE token SET last_used_day = $1
      WHERE id = ANY($2::bigint[]) AND (last_used_day IS NULL OR last_used_day < $1)`,
    values: [day, tokenIds],
  });
}

/** Every token, in the order of ids. */
export function allTokens(connection: Connection): Promise<StoredToken[]> {
  return select(connection, 'ORDER BY id', []);
}

/**
 * Gives a token the state that it has in the source of a copy.
 *
 * @returns false when another token has its id, hash or label, or when it is revoked only here
 */
export async function putToken(connection: Connection, token: StoredToken): Promise<boolean> {
  const { id, hash, label, createdAt, expiresAt, revokedAt, lastUsedDay } = token;
  try {
    const written = await connection.run({
      text: `INSERT INTO token (id, hash, label, created_at, expires_at, revoked_at, last_used_day, change_number)
        VALUES ($1, $2, $3, $4, $5, $6, $7, ${NEXT_CHANGE_NUMBER}) ${UPDATE_COPIED_TOKEN} RETURNING id`,
      values: [id, hash, label, createdAt, expiresAt, revokedAt, lastUsedDay],
    });
    return written.length === 1;
  } catch (error) {
    if (sqlStateOf(error) === UNIQUE_VIOLATION) return false;
    throw error;
  }
}

async function tokenWithLabel(connection: Connection, label: string): Promise<StoredToken | undefined> {
  const [token] = await select(connection, 'WHERE label = $1', [label]);
  return token;
}

async function select(connection: Connection, clauses: string, values: unknown[]): Promise<StoredToken[]> {
  const rows = await connection.run({ text: `SELECT ${COLUMNS} FROM token ${clauses}`, values });
  return rows.map(storedToken);
}

function storedToken(row: TextRow): StoredToken {
  const [id, hash, label, createdAt, expiresAt, revokedAt, lastUsedDay, changeNumber] = row;
  return {
    id: Number(id),
    hash: hash!,
    label: label!,
    createdAt: Number(createdAt),
    expiresAt: expiresAt === null ? null : Number(expiresAt),
    revokedAt: revokedAt === null ? null : Number(revokedAt),
    lastUsedDay: lastUsedDay!,
    changeNumber: Number(changeNumber),
  };
}
