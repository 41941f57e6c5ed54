/** Limits that clients see or that several folders share; the default, if there is a setting. */

/** Smallest id: the minimum of a signed 64-bit integer, OpenAPI format `int64`. */
export const ID_MIN = -(2n ** 63n);
/** Largest id: the maximum of a signed 64-bit integer. */
export const ID_MAX = 2n ** 63n - 1n;

/** Largest request body. The response to a larger one is 413. It is a setting. */
export const BODY_BYTES_MAX = 1024 * 1024;
/** A body up to this length always fits and is read at once. */
export const SHORT_BODY_BYTES_MAX = 16 * 1024;
/** Largest request line and header section together. The response to a larger one is 431. */
export const HEADER_BYTES_MAX = 16 * 1024;

/** Time to receive a whole request. After it, the response is 408. */
export const REQUEST_TIMEOUT_MS = 13_000;
/** Time from SIGTERM to the last response. Connections that are open after it are closed. */
export const SHUTDOWN_MS = 8_000;
/** Time from SIGTERM to the end of the process, even if a hanging disk blocks the store. */
export const EXIT_MS = 9_500;

/** `Retry-After` of a 503: the service is overloaded, shuts down, or its store does not respond. */
export const RETRY_AFTER_SECONDS = 1;

/** Most tokens that one statement reads or updates. A long statement would delay plants. */
export const TOKENS_AT_A_TIME_MAX = 1_000;
/** So many consecutive token ids form a group. When a token changes, its group is read again. */
export const TOKEN_GROUP_SIZE = 250;
/** Latest expiry of a token: the last time that a Date can have (ECMAScript, Time Values). */
export const TOKEN_EXPIRY_MS_MAX = 8.64e15;
