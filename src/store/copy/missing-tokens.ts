import type { StoredToken } from '../../contract/stored-token.ts';
import { StoreRefused, type TokenCopy } from '../plant-store.ts';
import { ADVICE } from './missing-revisions.ts';

/**
 * The tokens that the target of a copy lacks, or has as they once were, in the order in which they were changed in
 * the source. The number of that change is left out of account: every store counts its own.
 *
 * @throws {StoreRefused} when the target has a token that the source does not have, or one that is revoked there alone:
 *   nothing lets a revoked token in again
 */
export function missingTokens(source: readonly StoredToken[], target: readonly StoredToken[]): TokenCopy[] {
  const kept = new Map(target.map(token => [token.id, token]));
  const copies: TokenCopy[] = [];
  for (const token of source.toSorted((a, b) => a.changeNumber - b.changeNumber)) {
    const own = kept.get(token.id);
    kept.delete(token.id);
    const what = own === undefined ? 'made' : changeOf(token, own);
    if (what !== undefined) copies.push({ token, what });
  }
  for (const { label } of kept.values()) {
    throw new StoreRefused(
      `the target holds the token ${JSON.stringify(label)}, which the source does not; ${ADVICE}`,
    );
  }
  return copies;
}

function changeOf(token: StoredToken, own: StoredToken): TokenCopy['what'] | undefined {
  if (token.hash !== own.hash || token.label !== own.label || token.createdAt !== own.createdAt) {
    throw new StoreRefused(
      `token ${token.id} of the target, ${JSON.stringify(own.label)}, is another one than that of the source, ${JSON.stringify(token.label)}; ${ADVICE}`,
    );
  }
  if (own.revokedAt !== null && token.revokedAt === null) {
    throw new StoreRefused(
      `the token ${JSON.stringify(token.label)} is revoked in the target and not in the source; revoke it in the source too, and copy again`,
    );
  }
  if (token.revokedAt !== own.revokedAt || token.expiresAt !== own.expiresAt) return 'changed';
  return token.lastUsedDay === own.lastUsedDay ? undefined : 'used';
}
