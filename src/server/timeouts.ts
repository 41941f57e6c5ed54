/** A client must send its header section within this time. */
export const HEADERS_TIMEOUT_MS = 10_000;
/**
 * The server closes a connection for which the kernel has accepted no written bytes for this long.
 */
export const UNTAKEN_MAX_MS = 10_000;
/** After the last response, received bytes are discarded for at most this long. */
export const LINGER_MS = 2_000;
/** The time that Keep-Alive announces. An idle connection stays open one second longer. */
export const KEEP_ALIVE_MS = 65_000;
/** Time from SIGTERM to the last response. Connections that are open after it are closed. */
export const SHUTDOWN_MS = 8_000;
