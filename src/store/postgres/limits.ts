import { relation } from '../../contract/limits.ts';
import { FAILING_QUEUE_TIMEOUT_MS } from '../limits.ts';

/** Connections that carry plants, beside one for tokens and readiness. The default of `--connections`. */
export const POSTGRES_CONNECTIONS = 4;
/** Most that `--connections` may be: beyond this a server gets slower, not faster. */
export const POSTGRES_CONNECTIONS_MAX = 64;

/** Time of one host to accept a connection and to authenticate. The default of `connect_timeout`. */
export const CONNECT_TIMEOUT_MS = 1_500;
/** After this an unanswered statement is given up; whether it was carried out is then unknown. */
export const STATEMENT_TIMEOUT_MS = 2_000;
/** The server cancels a statement this much earlier, so that none is left running there. */
export const STATEMENT_CANCEL_MARGIN_MS = 250;
/** One operation has this long for all its attempts; then its plants get 503. */
export const OPERATION_TIMEOUT_MS = 3_000;
/** After a serialization failure or deadlock: at most this, times the attempts so far. */
export const RETRY_DELAY_MS = 5;
/** After the server had no connection left, no further one is opened for this long. */
export const FULL_SERVER_INTERVAL_MS = 1_000;
/** While no host takes writes, all of them are asked again this often. */
export const SEARCH_INTERVAL_MS = 100;
/** A silent connection is probed (TCP keep-alive) after this. */
export const KEEP_ALIVE_DELAY_MS = 5_000;
/** Time of the server to acknowledge that a connection is closed. */
export const CLOSE_TIMEOUT_MS = 1_000;

/** One statement of `export`, `show` or `copy`. */
export const COMMAND_STATEMENT_TIMEOUT_MS = 60_000;
/** Rows that are read with one statement, and the bytes of their text, which only a single row may exceed. */
export const PAGE_ROWS = 2_000;
export const PAGE_TEXT_BYTES = 8 * 1024 * 1024;
/** Attempts of a transaction of `copy` that fails for a passing reason. */
export const COPY_ATTEMPTS_MAX = 5;

/** One schema step; a large table takes its time. */
export const SCHEMA_STEP_TIMEOUT_MS = 3_600_000;
/** While another instance is making the schema, the lookup is repeated so many times, this often. */
export const SCHEMA_ATTEMPTS_MAX = 20;
export const SCHEMA_ATTEMPT_INTERVAL_MS = 100;

relation(POSTGRES_CONNECTIONS <= POSTGRES_CONNECTIONS_MAX, 'the default is a value of the setting');
relation(
  STATEMENT_TIMEOUT_MS < OPERATION_TIMEOUT_MS,
  'within one operation a statement may time out and its result be looked up',
);
relation(STATEMENT_CANCEL_MARGIN_MS < STATEMENT_TIMEOUT_MS, 'the server has some time for a statement');
relation(
  FAILING_QUEUE_TIMEOUT_MS + OPERATION_TIMEOUT_MS < 5_000,
  'while PostgreSQL is away every plant gets its response within 5 s',
);
