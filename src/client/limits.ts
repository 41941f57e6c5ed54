/** Limits of the client that other parts or the documents rely on. */

/** Timeout for one response. An option. */
export const RESPONSE_TIMEOUT_MS = 10_000;
/** How long a plant is retried. An option. */
export const RETRY_FOR_MS = 30_000;
/** Delay before the first retry. It doubles with each attempt, up to the maximum. */
export const RETRY_DELAY_MIN_MS = 100;
export const RETRY_DELAY_MAX_MS = 2_000;
/** Longest `Retry-After` that the client follows. A longer one is cut to this value. */
export const RETRY_AFTER_MAX_MS = 60_000;
/** Plants of `createPlants` in flight. An option. */
export const CONCURRENCY = 64;
export const CONCURRENCY_MAX = 10_000;
/** Text of the plants in flight, in UTF-16 code units. A single plant may exceed it. */
export const IN_FLIGHT_TEXT_LENGTH_MAX = 16 * 1024 * 1024;
/** Longest delay of a timer: 2^31 - 1 ms, nearly 25 days. */
export const TIMER_MS_MAX = 2_147_483_647;
