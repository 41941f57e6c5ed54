import { relation } from '../contract/limits.ts';

/** Changes to tokens are read this often; a revocation must take effect within 5 s. */
export const TOKEN_REFRESH_INTERVAL_MS = 1_000;
/** How often the fingerprint of all tokens is compared; where it is another one, all are read anew. */
export const TOKEN_FINGERPRINT_INTERVAL_MS = 3_000;
/** An unknown well-formed token makes the next read of changes come sooner, but never sooner than this. */
export const TOKEN_REFRESH_INTERVAL_MIN_MS = 200;
/** Requests with unknown tokens that are answered in one event-loop iteration; they take about a millisecond. */
export const UNKNOWN_TOKENS_AT_A_TIME_MAX = 16;

relation(TOKEN_REFRESH_INTERVAL_MS * 2 < 5_000, 'a revocation takes effect within 5 s if one read fails');
relation(
  TOKEN_FINGERPRINT_INTERVAL_MS + TOKEN_REFRESH_INTERVAL_MS < 5_000,
  'a revocation takes effect within 5 s also where its change number was given before',
);
