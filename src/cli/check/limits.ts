/** Rules that are checked at the same time: fast enough for a distant server, with little load. */
export const RULES_IN_FLIGHT = 8;
/** From the first byte of the request to the last byte of the response. */
export const EXCHANGE_TIMEOUT_MS = 10_000;
/** A Plant or an Error in a response to a rule is far smaller. */
export const RESPONSE_BYTES_MAX = 1024 * 1024;
/** Tries of a request whose responses ask for a retry, and the longest delay between them. */
export const RATE_LIMIT_TRIES_MAX = 5;
export const RATE_LIMIT_DELAY_MS_MAX = 10_000;
/** Delay after a 429 without Retry-After. */
export const RATE_LIMIT_DELAY_MS = 1_000;
/** Lengths of a body and of a message in a finding, in UTF-16 code units. */
export const SHOWN_BODY_LENGTH_MAX = 500;
export const MESSAGE_LENGTH_MAX = 500;
/** Beyond 2^53, this many ids contain two neighbours of one double value. */
export const NEIGHBOUR_SEARCH_IDS = 8n;
