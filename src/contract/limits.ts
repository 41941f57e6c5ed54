/**
 * Limits that clients see or that several parts share; each part has a list of its own beside it. What an operator may
 * change is a setting that starts from the value here.
 */

/** Smallest id: the lower end of a signed 64-bit integer, OpenAPI format `int64`. */
export const ID_MIN = -(2n ** 63n);
/** Largest id: the upper end of a signed 64-bit integer. */
export const ID_MAX = 2n ** 63n - 1n;

/** Largest request body; a larger one is answered 413. A setting. */
export const BODY_BYTES_MAX = 1024 * 1024;
/** Most that the setting may be. */
export const BODY_BYTES_SETTING_MAX = 8 * 1024 * 1024;
/** Bodies that are arriving have so much memory together; one that finds no room is answered 503. */
export const ARRIVING_BODIES_BYTES_MAX = 64 * 1024 * 1024;
/** A body up to this always has room. */
export const SHORT_BODY_BYTES_MAX = 16 * 1024;
/** Largest request line and header section together; more is answered 431. */
export const HEADER_BYTES_MAX = 16 * 1024;

/** Longest head of a request that may be ordinary (see http/ordinary-connection.ts). */
export const ORDINARY_HEAD_BYTES_MAX = 2 * 1024;
/** Heads that are remembered. */
export const ORDINARY_HEADS_MAX = 1_000;
/** Requests of one connection that are taken before the first of them is answered. */
export const ORDINARY_PIPELINE_MAX = 1_024;
/**
 * Ordinary requests that are taken in one turn of the event loop, of connections that wait for no answer and of those that
 * do: together a few ms, after which commits are heard of.
 */
export const TURN_FIRST_REQUESTS_MAX = 384;
export const TURN_FURTHER_REQUESTS_MAX = 128;
/** The rest of a longer body is not waited for there: a socket is read by so much at a time. */
export const ORDINARY_REST_BYTES_MAX = 64 * 1024;
/** The second piece of an ordinary request has this long to come, before the limits below begin to run. */
export const ORDINARY_REST_WAIT_MS = 1_000;
/** Node's HTTP server is given what arrives in pieces of this at most (see http/paced-connection.ts). */
export const SERVER_PIECE_BYTES_MAX = 16 * 1024;
/** In one turn of the event loop it is given pieces for this long; answering them takes about as long again. */
export const SERVER_TURN_MS = 1;

/** Most requests in a window that the setting of the rate limit may grant. */
export const RATE_LIMIT_REQUESTS_MAX = 1_000_000;
/** A browser may keep the answer to a preflight for this long; Chromium keeps none longer. */
export const PREFLIGHT_MAX_AGE_SECONDS = 7_200;

/** Longest Content-Type that is looked into; no name of JSON is longer. */
export const MEDIA_TYPE_LENGTH_MAX = 200;

/** A client has this long to send its headers, and this long for headers and body together; then 408. */
export const HEADERS_WAIT_MS = 10_000;
export const REQUEST_WAIT_MS = 13_000;
/** How often waiting requests are checked against the two limits above. */
export const WAIT_CHECK_INTERVAL_MS = 500;
/** A connection on which nothing moves, though an answer waits to be read, is cut after at most this. */
export const STALLED_CONNECTION_MS = 15_000;
/** An idle connection is kept open for the next request for this long. */
export const KEEP_ALIVE_MS = 65_000;
/** It is closed so much later than it was told, for a request that is on its way at that moment; as Node has it. */
export const KEEP_ALIVE_MARGIN_MS = 1_000;
/** Of a request that is refused so much is read before the answer, if it is there: what is then whole can be followed by others. */
export const REFUSED_REST_BYTES_MAX = 128 * 1024;
/** After refusing a request whose body is still arriving, the rest is read and dropped for at most this long. */
export const DISCARD_MS = 2_000;
/** While the service shuts down, a connection on which no request is seen is kept for this long. */
export const SHUTDOWN_GRACE_MS = 500;
/** From SIGTERM to the last answer; what is still open then is cut. */
export const SHUTDOWN_MS = 8_000;
/** From SIGTERM to the end of the process, also where a disk that hangs does not let go of the store. */
export const EXIT_MS = 9_500;

/** What `Retry-After` tells a client that was refused for load or for a store that does not answer. */
export const RETRY_AFTER_SECONDS = 1;

/** Changes to tokens made elsewhere are read this often; a revocation must take effect within 5 s. */
export const TOKEN_REFRESH_INTERVAL_MS = 1_000;
/** It is looked this often whether changes that were read are still there; all tokens are read anew where not. */
export const TOKEN_FINGERPRINT_INTERVAL_MS = 3_000;
/** Tokens that are read, or noted as used, at a time: plants and requests wait no longer than for these. */
export const TOKENS_AT_A_TIME_MAX = 1_000;
/** A well-formed token that is not known makes the service look again, at most this often. */
export const TOKEN_REFRESH_INTERVAL_MIN_MS = 200;
/** Longest label of a token, in UTF-16 code units. */
export const TOKEN_LABEL_LENGTH_MAX = 100;

/** Asserts at start that limits fit each other; every list of limits says its own relations by this. */
export function relation(holds: boolean, rule: string): void {
  if (!holds) throw new Error(`limits contradict each other: ${rule}`);
}
relation(HEADERS_WAIT_MS < REQUEST_WAIT_MS, 'headers are part of the request');
relation(
  ORDINARY_REST_WAIT_MS + REQUEST_WAIT_MS + WAIT_CHECK_INTERVAL_MS <= 15_000,
  'a request that comes too slowly is refused within 15 s',
);
relation(BODY_BYTES_MAX <= BODY_BYTES_SETTING_MAX, 'the default is a value of the setting');
relation(SHORT_BODY_BYTES_MAX < ARRIVING_BODIES_BYTES_MAX, 'short bodies are the small part');
relation(
  BODY_BYTES_SETTING_MAX * 2 <= ARRIVING_BODIES_BYTES_MAX,
  'the longest body has room beside another one',
);
relation(
  TOKEN_REFRESH_INTERVAL_MS * 2 < 5_000,
  'a revocation takes effect within 5 s even if one look fails',
);
relation(
  TOKEN_FINGERPRINT_INTERVAL_MS + TOKEN_REFRESH_INTERVAL_MS < 5_000,
  'a revocation takes effect within 5 s also where its number was given before',
);
relation(SHUTDOWN_GRACE_MS < SHUTDOWN_MS, 'connections close within the time to shut down');
relation(SHUTDOWN_MS < EXIT_MS, 'the store is closed after the last answer');
relation(EXIT_MS < 10_000, 'the process ends within 10 s of SIGTERM');
