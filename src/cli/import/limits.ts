/** Every limit of `import`: one name, one unit, one home. */
import { CONCURRENCY_MAX, IN_FLIGHT_TEXT_LENGTH_MAX } from '../../client/limits.ts';
import { relation } from '../../contract/limits.ts';

/** Bytes read from a file, or unpacked from it, at a time. */
export const CHUNK_BYTES = 64 * 1024;
/** Longest CSV row (bytes) and JSON value (UTF-16 code units); a longer one ends the import. */
export const ROW_LENGTH_MAX = 64 * 1024 * 1024;
/** Fields of a CSV row: as many as a spreadsheet can have; a row with more ends the import. */
export const ROW_FIELDS_MAX = 16_384;
/** Lines that are not UTF-8 and are named. */
export const FAULTY_LINES_MAX = 10;
/** Messages show this many characters of a file, such as its header. */
export const SHOWN_LENGTH_MAX = 200;

/** In a dry run: different ids and names that are compared; they take up to about 500 MB. */
export const DISTINCT_MAX = 1_000_000;
/** In a dry run: lines about each kind of finding that would not be rejected. */
export const EXAMPLES_MAX = 5;
/** In a dry run: rows of a rare name, rows of a frequent one, compared frequent names. */
export const RARE_MAX = 2;
export const FREQUENT_MIN = 10;
export const FREQUENT_NAMES_MAX = 10_000;

/** Plants in flight at the same time. */
export const IN_FLIGHT_DEFAULT = 64;
export const IN_FLIGHT_MAX = 1024;

/** Timeout of one response; see the option `responseTimeoutMs` of the client. */
export const IMPORT_RESPONSE_TIMEOUT_MS = 30_000;
/** A shorter outage is not reported on the terminal. */
export const OUTAGE_REPORT_DELAY_MS = 1_000;
/** The import ends if no row was stored or rejected for this long. */
export const OUTAGE_MAX_MS = 5 * 60_000;

relation(IN_FLIGHT_MAX <= CONCURRENCY_MAX, 'the client accepts the largest value of --in-flight');
relation(CHUNK_BYTES <= IN_FLIGHT_TEXT_LENGTH_MAX, 'the client accepts the plants of one chunk of a file');
relation(IMPORT_RESPONSE_TIMEOUT_MS < OUTAGE_MAX_MS, 'a plant is sent again after a response timeout');
