/** What a store keeps of a token. The token itself is never kept: whoever reads the store cannot use it. */
export interface StoredToken {
  /** Given by the store, from 1; the `recorded_by` of plants sent with this token. */
  id: number;
  /** SHA-256 of the whole token, 64 hexadecimal digits in lower case. */
  hash: string;
  /** Chosen by the operator; no two tokens of a store share one, so that it names the token for good. */
  label: string;
  /** Times are milliseconds since 1970 UTC. */
  createdAt: number;
  expiresAt: number | null;
  revokedAt: number | null;
  /** UTC day of the last request it was accepted for, `YYYY-MM-DD`. */
  lastUsedDay: string | null;
  /** Grows with every token made or revoked in this store; tokens are read in this order, a page at a time. */
  changeNumber: number;
}

/** What is needed to store a new token; the rest is the store's to fill in. */
export type NewStoredToken = Pick<StoredToken, 'hash' | 'label' | 'createdAt' | 'expiresAt'>;
