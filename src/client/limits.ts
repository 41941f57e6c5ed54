/** Limits of the client: one name and one unit each. Options default to these values. */
import { relation } from '../contract/limits.ts';

/** Timeout for one response. An option. */
export const RESPONSE_TIMEOUT_MS = 10_000;
/** How long a plant is retried. An option. */
export const RETRY_FOR_MS = 30_000;
/** Delay before the first retry. It doubles with each attempt, up to the maximum. */
export const RETRY_DELAY_MIN_MS = 100;
export const RETRY_DELAY_MAX_MS = 2_000;
/** Longest `Retry-After` that the client follows. A longer one is cut to this value. */
export const RETRY_AFTER_MAX_MS = 60_000;
/** Attempts per plant that may end with error 50001. */
export const INTERNAL_ERROR_ATTEMPTS_MAX = 10;
/** The same for error 40000, which means that a gateway truncates the client's requests. */
export const BAD_HTTP_ATTEMPTS_MAX = 5;
/** Plants of `createPlants` in flight. An option. */
export const CONCURRENCY = 64;
export const CONCURRENCY_MAX = 10_000;
/** Text of the plants in flight, in UTF-16 code units. A single plant may exceed it. */
export const IN_FLIGHT_TEXT_LENGTH_MAX = 16 * 1024 * 1024;
/** When `createPlants` ends early, plants in flight have this long to get their responses. */
export const CREATE_PLANTS_DRAIN_TIMEOUT_MS = 5_000;
/** Longest delay of a timer: 2^31 - 1 ms, nearly 25 days. */
export const TIMER_MS_MAX = 2_147_483_647;

/** Bytes of a response with its headers, beside the plant that it repeats. Far more than needed. */
export const RESPONSE_BYTES_MAX = 64 * 1024;
/** Bytes of one character of a plant in a response: JSON may write it as `\u0000`. */
export const RESPONSE_BYTES_PER_CHARACTER = 6;
/** Interim responses before a response. Gateways send one or two. Every chunk parses all again. */
export const INTERIM_RESPONSES_MAX = 16;

/** Connections that one client opens in Node. Further requests wait for room on one of them. */
export const CONNECTIONS_MAX = 64;
/** Requests in flight on one connection. A lower limit makes the service slower per request. */
export const PIPELINE_MAX = 32;
/** Shorter than idle timeouts of gateways, which would lose a request as they close. */
export const IDLE_CONNECTION_MS = 4_000;

relation(RETRY_DELAY_MIN_MS <= RETRY_DELAY_MAX_MS, 'the delay before a retry grows');
relation(RETRY_DELAY_MAX_MS <= RETRY_FOR_MS, 'the default time allows for at least one retry');
relation(CONCURRENCY <= CONCURRENCY_MAX, 'the default is a valid value of the option');
relation(RETRY_AFTER_MAX_MS * 1.25 <= TIMER_MS_MAX, 'a timer supports the longest Retry-After with jitter');
