/**
 * Limits that clients see or that several parts share; each part has a list of its own beside it. What an operator may
 * change is a setting that starts from the value here.
 */

/** Smallest id: the lower end of a signed 64-bit integer, OpenAPI format `int64`. */
export const ID_MIN = -(2n ** 63n);
/** Largest id: the upper end of a signed 64-bit integer. */
export const ID_MAX = 2n ** 63n - 1n;

/** Largest request body; a larger one is answered 413. A setting. */
export const BODY_BYTES_MAX = 1024 * 1024;
/** Most that the setting may be. */
export const BODY_BYTES_SETTING_MAX = 8 * 1024 * 1024;
/** Largest request line and header section together; more is answered 431. */
export const HEADER_BYTES_MAX = 16 * 1024;

/** Most requests in a window that the setting of the rate limit may grant. */
export const RATE_LIMIT_REQUESTS_MAX = 1_000_000;

/** A client has this long to send a whole request; then 408. */
export const REQUEST_TIMEOUT_MS = 13_000;
/** From SIGTERM to the last answer; what is still open then is cut. */
export const SHUTDOWN_MS = 8_000;
/** From SIGTERM to the end of the process, also where a disk that hangs does not let go of the store. */
export const EXIT_MS = 9_500;

/** What `Retry-After` tells a client that was refused for load or for a store that does not answer. */
export const RETRY_AFTER_SECONDS = 1;

/** Tokens that are read, or noted as used, at a time: plants and requests wait no longer than for these. */
export const TOKENS_AT_A_TIME_MAX = 1_000;
/** Longest label of a token, in UTF-16 code units. */
export const TOKEN_LABEL_LENGTH_MAX = 100;

/** Asserts at start that limits fit each other; every list of limits says its own relations by this. */
export function relation(holds: boolean, rule: string): void {
  if (!holds) throw new Error(`limits contradict each other: ${rule}`);
}
relation(BODY_BYTES_MAX <= BODY_BYTES_SETTING_MAX, 'the default is a value of the setting');
relation(SHUTDOWN_MS < EXIT_MS, 'the store is closed after the last answer');
relation(EXIT_MS < 10_000, 'the process ends within 10 s of SIGTERM');
