/** Connections that write plants; one more is for tokens. The default of `--connections`. */
export const POSTGRES_CONNECTIONS = 4;
/** Maximum of `--connections`. With more connections a server gets slower. */
export const POSTGRES_CONNECTIONS_MAX = 64;

/** Timeout to connect to one host and to authenticate. The default of `connect_timeout`. */
export const CONNECT_TIMEOUT_MS = 1_500;
/** Timeout of one statement. After it, it is unknown whether the server executed the statement. */
export const STATEMENT_TIMEOUT_MS = 2_000;
/** Timeout of one operation with all its attempts. Then its plants get 503. */
export const OPERATION_TIMEOUT_MS = 3_000;
/** Interval between attempts to connect while no host accepts writes. */
export const SEARCH_INTERVAL_MS = 100;

/** Timeout of one statement of a command that reads or copies a store. */
export const COMMAND_STATEMENT_TIMEOUT_MS = 60_000;
