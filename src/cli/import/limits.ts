/** Every limit of `import`: one name, one unit, one home. */

/** Bytes read from a file, or unpacked from it, at a time. */
export const CHUNK_BYTES = 64 * 1024;
/** Longest row of a CSV file in bytes, and longest JSON value in UTF-16 code units; a longer one stops. */
export const ROW_LENGTH_MAX = 64 * 1024 * 1024;

/** Plants sent and not yet answered. */
export const IN_FLIGHT_DEFAULT = 64;
export const IN_FLIGHT_MAX = 1024;
/** Text of the plants in flight, in UTF-16 code units; one plant may always go. */
export const IN_FLIGHT_TEXT_LENGTH_MAX = 16 * 1024 * 1024;

/** Time for one answer; see the option of the client. */
export const IMPORT_ANSWER_WAIT_MS = 30_000;
/** What the wait before a retry of a row doubles up to; it begins as the client's does. */
export const IMPORT_RETRY_WAIT_MAX_MS = 2_000;
/** The longest `Retry-After` that is obeyed in full. */
export const RETRY_AFTER_MAX_MS = 60_000;
/** A service that is away for less than this is not worth a line on the terminal. */
export const OUTAGE_SAID_AFTER_MS = 1_000;
/** The import gives up when no row was answered for good for this long. */
export const OUTAGE_MAX_MS = 5 * 60_000;
/** A row that the service answers with error 50001 this often is rejected. */
export const INTERNAL_ERROR_TRIES_MAX = 10;
/** The import stops at a row that is answered with error 40000 this often: requests are cut on their way, each time. */
export const BAD_HTTP_TRIES_MAX = 5;
/** After Ctrl-C, what is in flight has this long to be answered. */
export const STOP_WAIT_MS = 5_000;
