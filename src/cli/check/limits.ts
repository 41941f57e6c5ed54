/** Rules in flight at the same time: enough for a server far away, and little load for any. */
export const RULES_IN_FLIGHT = 8;
/** From the first byte sent to the last byte of the response. */
export const EXCHANGE_TIMEOUT_MS = 10_000;
/** A Plant or an Error as a response to what the rules send is far smaller. */
export const RESPONSE_BYTES_MAX = 1024 * 1024;
/** A request that gets 429 is sent so often at most, each time after so long. */
export const RATE_LIMIT_TRIES_MAX = 5;
export const RATE_LIMIT_DELAY_MS_MAX = 10_000;
/** Where a 429 has no Retry-After. */
export const RATE_LIMIT_DELAY_MS = 1_000;
/** A finding shows so much of a body, in UTF-16 code units, and its message as much. */
export const SHOWN_BODY_LENGTH_MAX = 500;
export const MESSAGE_LENGTH_MAX = 500;
/** Beyond 2^53 two ids in a row that are one double are found among so many, even when fixed ones lie between. */
export const NEIGHBOUR_SEARCH_IDS = 8n;
