import { relation } from '../contract/limits.ts';

/** The cached tokens are refreshed this often; a revocation must take effect within 5 s. */
export const TOKEN_REFRESH_INTERVAL_MS = 1_000;
/** An unknown well-formed token makes the next refresh come sooner, but never sooner than this. */
export const TOKEN_REFRESH_INTERVAL_MIN_MS = 200;
/** Lookups of unknown tokens that are resolved in one event-loop iteration; their requests take about a millisecond. */
export const UNKNOWN_TOKENS_AT_A_TIME_MAX = 16;
/** Hashes of tokens that are remembered, whether the store has the tokens or not. */
export const TOKEN_HASHES_MAX = 1_000;

relation(
  (TOKEN_REFRESH_INTERVAL_MS + TOKEN_REFRESH_INTERVAL_MIN_MS) * 2 < 5_000,
  'a revocation takes effect within 5 s if one refresh fails',
);
