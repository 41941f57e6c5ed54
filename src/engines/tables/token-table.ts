import type { NewStoredToken, StoredToken, TokenGroup } from '../../core/tokens/stored-token.ts';
import type { TokenSource } from '../../core/tokens/token-cache.ts';
import { parameters, type TableAccess } from './table-access.ts';
import { allTokens, NEXT_CHANGE_NUMBER, TOKEN_COLUMNS, tokenOf, tokensOfGroup } from './token-rows.ts';

/** How an engine finds out which tokens have changed. */
export interface TokenChanges {
  /** Implements {@link TokenSource.tokenFingerprints}. */
  tokenFingerprints(): Promise<ReadonlyMap<number, string>>;
  /** SQL that computes the fingerprint of a group from its tokens; undefined if there is none. */
  tokenDigest: string | undefined;
  /** Resolves when all rows that were read before are durable. */
  confirmRows(): Promise<void>;
}

/** The table of own bearer tokens, and of the subjects of a provider. Both engines run the same SQL. */
export class TokenTable implements TokenSource {
  readonly #access: TableAccess;
  readonly #changes: TokenChanges;

  constructor(access: TableAccess, changes: TokenChanges) {
    this.#access = access;
    this.#changes = changes;
  }

  tokenFingerprints(): Promise<ReadonlyMap<number, string>> {
    return this.#changes.tokenFingerprints();
  }

  tokensOfGroup(group: number): Promise<TokenGroup> {
    return tokensOfGroup(this.#access.readRows, group, this.#changes.tokenDigest);
  }

  /** @returns the token as it is stored, or undefined when its label is taken */
  async createToken({ hash, label, createdAt, expiresAt }: NewStoredToken): Promise<StoredToken | undefined> {
    const insert = `INSERT INTO token (id, hash, label, created_at, expires_at, change_number)
      VALUES ((SELECT coalesce(max(id), 0) + 1 FROM token), $1, $2, $3, $4, ${NEXT_CHANGE_NUMBER})
      ON CONFLICT DO NOTHING RETURNING ${TOKEN_COLUMNS}`;
    for (;;) {
      const [created] = await this.#access.writeRows(insert, [hash, label, createdAt, expiresAt]);
      if (created !== undefined) return tokenOf(created);
      const existing = await this.#token('label = $1 OR hash = $2', [label, hash]);
      if (existing?.hash === hash && existing.label === label) return await this.#onceDurable(existing);
      if (existing !== undefined) return undefined;
      // Another connection took the id or the change number. The next attempt takes later ones.
    }
  }

  tokens(): Promise<StoredToken[]> {
    return allTokens(this.#access.readRows);
  }

  /** Revokes a token permanently. @returns undefined when no token has this label */
  async revokeToken(label: string, revokedAt: number): Promise<StoredToken | undefined> {
    const update = `UPDATE token SET revoked_at = $1, change_number = ${NEXT_CHANGE_NUMBER}
      WHERE label = $2 AND revoked_at IS NULL RETURNING ${TOKEN_COLUMNS}`;
    const [revoked] = await this.#access.writeRows(update, [revokedAt, label]);
    if (revoked !== undefined) return tokenOf(revoked);
    const existing = await this.#token('label = $1', [label]);
    return existing && (await this.#onceDurable(existing));
  }

  /** Stores the day (`YYYY-MM-DD`) on which these tokens were last accepted. */
  async recordTokenUse(tokenIds: number[], day: string): Promise<void> {
    if (tokenIds.length === 0) return;
    // One statement stores all tokens, because a flush for each token would delay plants.
    const update = `UPDATE token SET last_used_day = $1
      WHERE id IN (${parameters(tokenIds, 2)}) AND (last_used_day IS NULL OR last_used_day < $1)`;
    await this.#access.writeRows(update, [day, ...tokenIds]);
  }

  async #token(condition: string, values: unknown[]): Promise<StoredToken | undefined> {
    const [row] = await this.#access.readRows(
      `SELECT ${TOKEN_COLUMNS} FROM token WHERE ${condition}`,
      values,
    );
    return row && tokenOf(row);
  }

  /**
   * Returns a stored token when it is durable. PostgreSQL shows a row before the standby has it,
   * for example after an attempt whose result was lost.
   */
  async #onceDurable(token: StoredToken): Promise<StoredToken> {
    await this.#changes.confirmRows();
    return token;
  }
}
