import { BODY_BYTES_SETTING_MAX, REQUEST_TIMEOUT_MS, relation, SHUTDOWN_MS } from '../contract/limits.ts';

/** Bodies that are arriving share this much memory; one that finds no room is answered 503. */
export const ARRIVING_BODIES_BYTES_MAX = 64 * 1024 * 1024;
/** A body up to this always has room, and is read at once; the fast path takes no longer one. */
export const SHORT_BODY_BYTES_MAX = 16 * 1024;
/** Longest Content-Type that is parsed; no name of JSON is longer, and parsing takes quadratic time. */
export const MEDIA_TYPE_LENGTH_MAX = 200;
/** A browser may keep the response to a preflight for this long; Chromium keeps none longer. */
export const PREFLIGHT_MAX_AGE_SECONDS = 7_200;

/** Longest header section that the fast path takes (ordinary-connection.ts). */
export const FAST_PATH_HEADERS_BYTES_MAX = 2 * 1024;
/** Header sections that the fast path remembers. */
export const FAST_PATH_CACHED_HEADERS_MAX = 1_000;
/** Requests of one connection that the fast path takes before the first of them has its response. */
export const FAST_PATH_PIPELINE_MAX = 1_024;
/** The second part of a request has this long to come before Node's HTTP server gets the connection. */
export const FAST_PATH_REST_TIMEOUT_MS = 1_000;

/** In each event-loop iteration, the fast path takes requests from connections without a pending response for this long. */
export const FIRST_REQUEST_BUDGET_MS = 8;
/** In each event-loop iteration, the fast path takes requests from connections with pending responses for this long. */
export const PIPELINED_BUDGET_MS = 0.5;
/** In each event-loop iteration, Node's HTTP server parses requests for this long; their responses take about as long again. */
export const NODE_SERVER_BUDGET_MS = 1;
/** In each event-loop iteration, a body longer than {@link SHORT_BODY_BYTES_MAX} is read for this long. */
export const LONG_BODY_BUDGET_MS = 2;
/** Node's HTTP server parses at most this much before the requests in it have their responses: 20 of the shortest. */
export const PARSED_CHUNK_BYTES_MAX = 512;

/** A client has this long to send its header section. */
export const HEADERS_TIMEOUT_MS = 10_000;
/** How often Node checks waiting requests against that limit and the one for whole requests. */
export const TIMEOUT_CHECK_INTERVAL_MS = 500;
/** A connection whose client reads nothing is closed at the first to third check: Node's timer forgives progress since the last one. */
export const STALLED_CHECK_MS = 5_000;
/** An idle connection is kept open for the next request for this long. */
export const KEEP_ALIVE_MS = 65_000;
/** It is closed this much later than it was told, for a request that is in flight then; as Node has it. */
export const KEEP_ALIVE_MARGIN_MS = 1_000;
/** What a client still sends behind the last response is read and dropped for at most this long. */
export const DISCARD_MS = 2_000;
/** While the service shuts down, a connection on which no request is seen is kept for this long. */
export const SHUTDOWN_GRACE_MS = 500;

relation(HEADERS_TIMEOUT_MS < REQUEST_TIMEOUT_MS, 'headers are part of the request');
relation(
  FAST_PATH_REST_TIMEOUT_MS + REQUEST_TIMEOUT_MS + TIMEOUT_CHECK_INTERVAL_MS <= 15_000,
  'a request that comes too slowly is refused within 15 s',
);
relation(SHORT_BODY_BYTES_MAX < ARRIVING_BODIES_BYTES_MAX, 'short bodies are the small part');
relation(
  BODY_BYTES_SETTING_MAX * 2 <= ARRIVING_BODIES_BYTES_MAX,
  'the longest body has room beside another one',
);
relation(SHUTDOWN_GRACE_MS < SHUTDOWN_MS, 'connections close within the time to shut down');
