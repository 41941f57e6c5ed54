/** Every limit of `import`: one name, one unit, one home. */
import { CONCURRENCY_MAX, IN_FLIGHT_TEXT_LENGTH_MAX } from '../../client/limits.ts';
import { relation } from '../../contract/limits.ts';

/** Bytes read from a file, or unpacked from it, at a time. */
export const CHUNK_BYTES = 64 * 1024;
/** Longest row of a CSV file in bytes, and longest JSON value in UTF-16 code units; a longer one stops. */
export const ROW_LENGTH_MAX = 64 * 1024 * 1024;
/** Of a header that is refused, and of columns that are ignored, so many characters are shown. */
export const HEADER_LENGTH_SHOWN_MAX = 200;

/** Plants sent and not yet answered. */
export const IN_FLIGHT_DEFAULT = 64;
export const IN_FLIGHT_MAX = 1024;

/** Time for one answer; see the option of the client. */
export const IMPORT_RESPONSE_TIMEOUT_MS = 30_000;
/** A service that is away for less than this is not worth a line on the terminal. */
export const OUTAGE_SAID_AFTER_MS = 1_000;
/** The import gives up when no row was answered for good for this long. */
export const OUTAGE_MAX_MS = 5 * 60_000;

relation(IN_FLIGHT_MAX <= CONCURRENCY_MAX, 'the client takes as many plants at a time as the option');
relation(CHUNK_BYTES <= IN_FLIGHT_TEXT_LENGTH_MAX, 'what is in flight has room for a piece of the file');
relation(IMPORT_RESPONSE_TIMEOUT_MS < OUTAGE_MAX_MS, 'a service that does not answer is tried again');
