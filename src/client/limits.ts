/** Every limit of the client: one name, one unit, one home. An option of the client starts from the value here. */

/** Time for one answer. An option. */
export const ANSWER_WAIT_MS = 10_000;
/** For how long a plant is sent again. An option. */
export const RETRY_FOR_MS = 30_000;
/** Wait before the first further try; it doubles from try to try up to the second number, or to that of `import`. */
export const RETRY_WAIT_MIN_MS = 100;
export const RETRY_WAIT_MAX_MS = 5_000;
/** Plants of `createPlants` that are sent and not yet answered. An option. */
export const CONCURRENCY = 64;
export const CONCURRENCY_MAX = 10_000;
/** The longest that a timer waits: 2^31 - 1 ms, nearly 25 days. */
export const WAIT_MS_MAX = 2_147_483_647;

/** Bytes of an answer with its head, beside the plant that it repeats. A plant store's are far shorter. */
export const ANSWER_BYTES_MAX = 64 * 1024;
/** Bytes that a character of a plant may take in an answer: JSON may write it as `\u0000`. */
export const ANSWER_BYTES_PER_CHARACTER = 6;
/** Interim answers before one answer; a gateway sends one or two, and each is read again until the answer is whole. */
export const INTERIM_ANSWERS_MAX = 16;

/** Connections of our own at a time; further requests wait for room on one of them. */
export const CONNECTIONS_MAX = 64;
/** Requests on one connection that are sent and not yet answered. With fewer the service takes longer for each. */
export const PIPELINE_MAX = 32;
/** An idle connection is closed before a gateway or a service does so, which is when a request on it would be lost. */
export const IDLE_CONNECTION_MS = 4_000;
