/** Limits that clients see or that several folders share. If a limit is a setting, this is its default. */

/** Smallest id: the minimum of a signed 64-bit integer, OpenAPI format `int64`. */
export const ID_MIN = -(2n ** 63n);
/** Largest id: the maximum of a signed 64-bit integer. */
export const ID_MAX = 2n ** 63n - 1n;

/** Largest number of a revision: that of the column type `integer` of PostgreSQL. */
export const REVISION_MAX = 2 ** 31 - 1;

/** Largest request body. The response to a larger one is 413. It is a setting. */
export const BODY_MAX_BYTES = 1024 * 1024;
/** A body up to this length needs no room among the long bodies, and is parsed at once. */
export const SHORT_BODY_MAX_BYTES = 16 * 1024;
/** Largest request line and header section together. The response to a larger one is 431. */
export const HEADER_MAX_BYTES = 16 * 1024;

/** Time to receive a whole request. After it, the response is 408. */
export const REQUEST_TIMEOUT_MS = 13_000;

/** `Retry-After` of a 503: the service is overloaded, shuts down, or its store does not respond. */
export const RETRY_AFTER_SECONDS = 1;
