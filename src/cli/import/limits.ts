/** Limits that several parts of `import` rely on. */

/** Bytes read from a file, or unpacked from it, at a time. */
export const CHUNK_BYTES = 64 * 1024;
/** Longest CSV row (bytes) and JSON value (UTF-16 code units); a longer one ends the import. */
export const ROW_LENGTH_MAX = 64 * 1024 * 1024;
/** Lines that are not UTF-8 and are named. */
export const FAULTY_LINES_MAX = 10;
/** Messages show this many characters of a file, such as its header. */
export const SHOWN_LENGTH_MAX = 200;

/** Largest number of plants in flight at the same time. */
export const IN_FLIGHT_MAX = 1024;

/** Timeout of one response; see the option `responseTimeoutMs` of the client. */
export const IMPORT_RESPONSE_TIMEOUT_MS = 30_000;
/** The import ends if no row was stored or rejected for this long. */
export const OUTAGE_MAX_MS = 5 * 60_000;
