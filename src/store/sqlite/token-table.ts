import type { DatabaseSync } from 'node:sqlite';
import { TOKENS_AT_A_TIME_MAX } from '../../contract/limits.ts';
import type { NewStoredToken, StoredToken } from '../../contract/stored-token.ts';
import { NEXT_CHANGE_NUMBER, TOKEN_EXPIRY, UPDATE_COPIED_TOKEN } from '../token-sql.ts';

/** Times as REAL: node:sqlite throws at an integer beyond 2^53, which another program may write. */
const COLUMNS = `id, hash, label, CAST(created_at AS REAL) AS createdAt,
  CAST(${TOKEN_EXPIRY} AS REAL) AS expiresAt, CAST(revoked_at AS REAL) AS revokedAt, last_used_day AS lastUsedDay, change_number AS changeNumber`;
/** https://sqlite.org/rescode.html#constraint_unique */
const SQLITE_CONSTRAINT_UNIQUE = 2067;

/** @returns the stored token, or undefined when its label is taken */
export function createToken(database: DatabaseSync, token: NewStoredToken): StoredToken | undefined {
  const { hash, label, createdAt, expiresAt } = token;
  const insert = `INSERT INTO token (hash, label, created_at, expires_at, change_number)
    VALUES (?, ?, ?, ?, ${NEXT_CHANGE_NUMBER}) RETURNING ${COLUMNS}`;
  return undefinedIfTaken(
    () => database.prepare(insert).get(hash, label, createdAt, expiresAt) as unknown as StoredToken,
  );
}

/** Hashes are random. So only a repeated label fails with a UNIQUE constraint. */
function undefinedIfTaken<T>(write: () => T): T | undefined {
  try {
    return write();
  } catch (error) {
    if ((error as { errcode?: number }).errcode === SQLITE_CONSTRAINT_UNIQUE) return undefined;
    throw error;
  }
}

/** Every token, in the order of ids. */
export function allTokens(database: DatabaseSync): StoredToken[] {
  return database.prepare(`SELECT ${COLUMNS} FROM token ORDER BY id`).all() as unknown as StoredToken[];
}

/** The next tokens created or revoked after this change number, in the order of the changes. */
export function tokensChangedSince(database: DatabaseSync, changeNumber: number): StoredToken[] {
  const select = `SELECT ${COLUMNS} FROM token WHERE change_number > ? ORDER BY change_number LIMIT ?`;
  return database.prepare(select).all(changeNumber, TOKENS_AT_A_TIME_MAX) as unknown as StoredToken[];
}

/** Revokes a token permanently. A token that is already revoked does not change. */
export function revokeToken(
  database: DatabaseSync,
  label: string,
  revokedAt: number,
): StoredToken | undefined {
  const update = `UPDATE token SET revoked_at = ?, change_number = ${NEXT_CHANGE_NUMBER}
    WHERE label = ? AND revoked_at IS NULL`;
  database.prepare(update).run(revokedAt, label);
  const select = `SELECT ${COLUMNS} FROM token WHERE label = ?`;
  return database.prepare(select).get(label) as unknown as StoredToken | undefined;
}

/** Stores the day on which these tokens were last accepted. */
export function recordTokenUse(database: DatabaseSync, tokenIds: number[], day: string): void {
  // One statement is one commit. A flush for each token would delay the plants behind it.
  const update = 'UPDATE token SET last_used_day = ? WHERE id IN (SELECT value FROM json_each(?))';
  database.prepare(update).run(day, JSON.stringify(tokenIds));
}

/**
 * Gives a token the state that it has in the source of a copy.
 *
 * @returns false when another token has its id, hash or label, or when it is revoked only here
 */
export function putToken(database: DatabaseSync, token: StoredToken): boolean {
  const { id, hash, label, createdAt, expiresAt, revokedAt, lastUsedDay } = token;
  const upsert = `INSERT INTO token (id, hash, label, created_at, expires_at, revoked_at, last_used_day, change_number)
    VALUES (?, ?, ?, ?, ?, ?, ?, ${NEXT_CHANGE_NUMBER}) ${UPDATE_COPIED_TOKEN}`;
  const values = [id, hash, label, createdAt, expiresAt, revokedAt, lastUsedDay];
  return undefinedIfTaken(() => database.prepare(upsert).run(...values))?.changes === 1;
}
