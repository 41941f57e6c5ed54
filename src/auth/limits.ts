import { relation } from '../contract/limits.ts';

/** Interval of token cache refreshes. */
export const TOKEN_REFRESH_INTERVAL_MS = 1_000;
/** Shortest interval between two refreshes, which the lookup of an unknown token may cause. */
export const TOKEN_REFRESH_INTERVAL_MIN_MS = 200;
/** A token is accepted only if a refresh that began at most this long ago has found it valid. */
export const TOKEN_AGE_MAX_MS = 4_000;
/** A lookup waits at most this long for a refresh. */
export const TOKEN_LOOKUP_TIMEOUT_MS = 1_000;

relation(TOKEN_AGE_MAX_MS < 5_000, 'a revocation takes effect within 5 s');
relation(
  (TOKEN_REFRESH_INTERVAL_MS + TOKEN_REFRESH_INTERVAL_MIN_MS) * 2 < TOKEN_AGE_MAX_MS,
  'tokens stay current if one refresh fails',
);
relation(TOKEN_REFRESH_INTERVAL_MIN_MS < TOKEN_LOOKUP_TIMEOUT_MS, 'a refresh begins while a lookup waits');
