/** Every limit of the client: one name, one unit, one home. An option of the client starts from the value here. */
import { relation } from '../contract/limits.ts';

/** Time for one answer. An option. */
export const RESPONSE_TIMEOUT_MS = 10_000;
/** For how long a plant is sent again. An option. */
export const RETRY_FOR_MS = 30_000;
/** Wait before the first further try; it doubles from try to try up to the second number. */
export const RETRY_DELAY_MIN_MS = 100;
export const RETRY_DELAY_MAX_MS = 2_000;
/** The longest `Retry-After` that is obeyed in full. */
export const RETRY_AFTER_MAX_MS = 60_000;
/** A plant that the service answers with error 50001 this often is sent no more. */
export const INTERNAL_ERROR_TRIES_MAX = 10;
/** The same for error 40000, which tells of a request that was cut on its way: it is cut each time. */
export const BAD_HTTP_TRIES_MAX = 5;
/** Plants of `createPlants` that are sent and not yet answered. An option. */
export const CONCURRENCY = 64;
export const CONCURRENCY_MAX = 10_000;
/** Their text, in UTF-16 code units; one plant may always go. */
export const IN_FLIGHT_TEXT_LENGTH_MAX = 16 * 1024 * 1024;
/** When `createPlants` ends early, what was sent has this long to be answered. */
export const LAST_RESPONSES_MS = 5_000;
/** The longest that a timer waits: 2^31 - 1 ms, nearly 25 days. */
export const TIMER_MS_MAX = 2_147_483_647;

/** Bytes of an answer with its head, beside the plant that it repeats. A plant store's are far shorter. */
export const RESPONSE_BYTES_MAX = 64 * 1024;
/** Bytes that a character of a plant may take in an answer: JSON may write it as `\u0000`. */
export const RESPONSE_BYTES_PER_CHARACTER = 6;
/** Interim answers before one answer; a gateway sends one or two, and each is read again until the answer is whole. */
export const INTERIM_RESPONSES_MAX = 16;

/** Connections of our own at a time; further requests wait for room on one of them. */
export const CONNECTIONS_MAX = 64;
/** Requests on one connection that are sent and not yet answered. With fewer the service takes longer for each. */
export const PIPELINE_MAX = 32;
/** An idle connection is closed before a gateway or a service does so, which is when a request on it would be lost. */
export const IDLE_CONNECTION_MS = 4_000;

relation(RETRY_DELAY_MIN_MS <= RETRY_DELAY_MAX_MS, 'the wait before a further try grows');
relation(RETRY_DELAY_MAX_MS <= RETRY_FOR_MS, 'a plant is tried again within the default time');
relation(CONCURRENCY <= CONCURRENCY_MAX, 'the default is a value of the option');
relation(RETRY_AFTER_MAX_MS * 1.25 <= TIMER_MS_MAX, 'a timer can wait as long as an answer asks for');
