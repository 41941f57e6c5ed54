/** A body up to this length always fits and is read at once; longer ones leave the fast path. */
export const SHORT_BODY_BYTES_MAX = 16 * 1024;

/** A client must send its header section within this time. */
export const HEADERS_TIMEOUT_MS = 10_000;
/**
 * Interval of the checks for unread responses. A client that reads nothing is cut off at the third
 * check at the latest, because Node accepts any progress since the previous check.
 */
export const STALLED_CHECK_MS = 5_000;
/** An idle connection stays open for this long. */
export const KEEP_ALIVE_MS = 65_000;
