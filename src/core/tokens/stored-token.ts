/** Most tokens that one statement reads or updates. A long statement would delay plants. */
export const TOKENS_AT_A_TIME_MAX = 1_000;
/** The number of consecutive token ids in a group. When a token changes, its group is read again. */
export const TOKEN_GROUP_SIZE = 250;
/** Latest expiry of a token: the last time that a Date can have (ECMAScript, Time Values). */
export const TOKEN_EXPIRY_MAX_MS = 8.64e15;

/** A token in a store. Only its hash is stored, so a reader of the store cannot use the token. */
export interface StoredToken {
  /** The store assigns it, from 1. Plants sent with this token have it as `recorded_by`. */
  id: number;
  /** SHA-256 of the whole token, as 64 lowercase hexadecimal digits. */
  hash: string;
  /** The operator chooses it. It is unique in the store, also among revoked tokens. */
  label: string;
  /** Times are milliseconds since 1970 UTC. */
  createdAt: number;
  expiresAt: number | null;
  revokedAt: number | null;
  /** UTC day of the last request for which the token was accepted, `YYYY-MM-DD`. */
  lastUsedDay: string | null;
  /** Increases with each token created or revoked in this store. Tokens are read in this order. */
  changeNumber: number;
}

/** The fields that the caller supplies for a new token. The store sets the others. */
export type NewStoredToken = Pick<StoredToken, 'hash' | 'label' | 'createdAt' | 'expiresAt'>;

/** The tokens of a group, from one snapshot. */
export interface TokenGroup {
  tokens: StoredToken[];
  /**
   * The fingerprint of exactly these tokens. It is undefined if the engine derives none from them,
   * and the fingerprint that was read before the tokens applies.
   */
  fingerprint: string | undefined;
}

/** The group of a token. Groups are numbered from 0. */
export function tokenGroupOf(tokenId: number): number {
  return Math.floor(tokenId / TOKEN_GROUP_SIZE);
}
