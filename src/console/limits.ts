/** Limits of the operator's console. */

/** A session ends after this time without a request. */
export const SESSION_IDLE_MS = 8 * 3_600_000;
/** Sessions at a time. A further one ends the one that was used least recently. */
export const SESSIONS_MAX = 100;
/** The response to a wrong code waits for this long, doubled for each wrong one before. */
export const WRONG_CODE_DELAY_MS = 100;
export const WRONG_CODE_DELAY_MS_MAX = 10_000;
/** Bytes of the body of a request. */
export const REQUEST_BYTES_MAX = 10_000;

/** Seconds of samples: the last quarter of an hour. */
export const SAMPLES_MAX = 15 * 60;
/** In a shorter time, the disk fills too unevenly to tell when it is full. */
export const DISK_RATE_MS_MIN = 600_000;

/** Plants of a page. */
export const PAGE_PLANTS = 50;
/** Revisions of one plant, its last ones. */
export const SHOWN_REVISIONS_MAX = 500;
/** A search ends soon after this time, and within a second, also if its page is not full. */
export const SEARCH_TIME_MS = 400;
/** Downloads at a time. Each keeps up to a page of plants in memory. */
export const DOWNLOADS_MAX = 4;
/** Characters of one write of a download. One write for each line is far slower. */
export const DOWNLOAD_CHUNK_LENGTH = 64 * 1024;

/** Rejected requests that are kept. */
export const REJECTED_MAX = 200;
/** Bytes of each body that are kept. */
export const REJECTED_BODY_BYTES_MAX = 2_000;
/** Longest time for which rejected requests are recorded. */
export const RECORDING_MINUTES_MAX = 60;
/** A screen waits this long for a count of all plants. */
export const COUNT_TIMEOUT_MS = 500;
/** The pause after a count, as a multiple of its time. */
export const COUNT_PAUSE_SHARE = 20;
