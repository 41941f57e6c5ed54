/** Limits of group commit, the same for every engine. */

/** Plants that may wait for a commit. The next plant is rejected with 503. */
export const QUEUE_PLANTS_MAX = 16_384;
/** Text of the plants that may wait for a commit, in UTF-16 code units of names and tags. */
export const QUEUE_TEXT_LENGTH_MAX = 64 * 1024 * 1024;
/** A plant that would wait longer than this, at the rate of the last batches, gets 503 at once. */
export const QUEUE_TIME_MAX_MS = 500;
/** Plants that may always be in flight. Fewer plants show too low a rate, in small batches. */
export const IN_FLIGHT_PLANTS_MIN = 1_024;
/** When a commit fails, queued plants that have waited longer than this get 503, too. */
export const FAILING_QUEUE_TIMEOUT_MS = 1_500;
/** Plants in one commit. */
export const BATCH_PLANTS_MAX = 2_048;
/** Plants of one id in one commit of an engine with concurrent commits. */
export const BATCH_REPEATS_MAX = 64;
/** Time of one commit with all its attempts. */
export const COMMIT_TIME_MS_MAX = 3_000;
/** Text in one commit; one plant always fits. */
export const BATCH_TEXT_LENGTH_MAX = 8 * 1024 * 1024;
