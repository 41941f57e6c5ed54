/** Memory for all long bodies until their responses are sent. The response beyond it is 503. */
export const LONG_BODIES_BYTES_MAX = 64 * 1024 * 1024;
/** A body up to this length always fits and is read at once; longer ones leave the fast path. */
export const SHORT_BODY_BYTES_MAX = 16 * 1024;

/** Longest header section that the fast path accepts. */
export const FAST_PATH_HEADERS_BYTES_MAX = 2 * 1024;

/** A client must send its header section within this time. */
export const HEADERS_TIMEOUT_MS = 10_000;
/** Node checks this often for timeouts of header sections and of whole requests. */
export const TIMEOUT_CHECK_INTERVAL_MS = 500;
/**
 * Interval of the checks for unread responses. The first to third one cuts a client that reads
 * nothing, because Node accepts any progress since the check before it.
 */
export const STALLED_CHECK_MS = 5_000;
/** An idle connection stays open for this long. */
export const KEEP_ALIVE_MS = 65_000;
/** During shutdown, idle connections stay open for this long. */
export const SHUTDOWN_GRACE_MS = 500;
