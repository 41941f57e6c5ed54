/** A session ends after this time without a request. */
export const SESSION_IDLE_MS = 8 * 3_600_000;
/** Sessions at a time. One more ends the session that was used least recently. */
export const SESSIONS_MAX = 100;
/** Shortest interval between two lookups of codes in the store. */
export const CODE_LOOKUP_INTERVAL_MS = 200;
/** Bytes of the body of a request of the page. */
export const REQUEST_BYTES_MAX = 10_000;

/** Samples, one for each second: the last 15 minutes. */
export const SAMPLES_MAX = 15 * 60;
/** Shortest measurement of the rate at which the disk fills. */
export const DISK_RATE_MS_MIN = 6 * 3_600_000;

/** Plants of a page, as in browser/plants.js. */
export const PAGE_PLANTS = 50;
/** The last revisions of one plant. */
export const SHOWN_REVISIONS_MAX = 500;
/** A page that is not full ends soon after this time, within a second. */
export const SEARCH_TIME_MS = 400;
/** Downloads at a time. Each holds up to a page of plants in memory. */
export const DOWNLOADS_MAX = 4;
/** Characters in one write of a download. One write for each line would be far slower. */
export const DOWNLOAD_CHUNK_LENGTH = 64 * 1024;

/** Rejected requests in memory. */
export const REJECTED_MAX = 200;
/** Stored bytes of the body of each rejected request. */
export const REJECTED_BODY_BYTES_MAX = 2_000;
/** Longest time for which rejected requests are recorded. */
export const RECORDING_MINUTES_MAX = 60;

/** A screen waits this long for a count of all plants. */
export const COUNT_TIMEOUT_MS = 500;
/** The pause after a count, as a multiple of its time. */
export const COUNT_PAUSE_SHARE = 20;
