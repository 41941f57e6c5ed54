import { relation } from '../contract/limits.ts';

/** Interval of token cache refreshes. */
export const TOKEN_REFRESH_INTERVAL_MS = 1_000;
/** Shortest interval between two refreshes, which the lookup of an unknown token may cause. */
export const TOKEN_REFRESH_INTERVAL_MIN_MS = 200;
/** Lookups of unknown tokens that are resolved per event-loop iteration; they take about 1 ms. */
export const UNKNOWN_TOKENS_AT_A_TIME_MAX = 16;
/** Token hashes that are cached, whether the tokens are known or not. */
export const TOKEN_HASHES_MAX = 1_000;

relation(
  (TOKEN_REFRESH_INTERVAL_MS + TOKEN_REFRESH_INTERVAL_MIN_MS) * 2 < 5_000,
  'a revocation takes effect within 5 s if one refresh fails',
);
