import type { HostAddress } from './postgres-url.ts';

/** Timeout of one statement. After the timeout, the server may have executed the statement. */
export const STATEMENT_TIMEOUT_MS = 2_000;
/** Timeout of one operation with all its attempts. Plants get 503 after it. */
export const OPERATION_TIMEOUT_MS = 3_000;

/** One SQL statement, with a value for each of its parameters. */
export interface Statement {
  text: string;
  values?: unknown[];
  /** A named statement is prepared once on each connection. */
  name?: string;
  /** The rows of COPY FROM STDIN, with which the text begins. It may have more statements. */
  copyRows?: string;
}

/** A row as the server sends it: text or null. */
export type TextRow = (string | null)[];

/** A connection to a host that accepts writes. It runs one statement at a time. */
export interface Connection {
  readonly host: HostAddress;
  /** All statements end by this time of the monotonic clock of the caller. */
  deadline: number;
  /** Whether the connection can run no more statements. */
  readonly isBroken: boolean;

  /**
   * Runs one statement. With `copyRows`, its text may have several, which are one transaction.
   *
   * @returns the rows of the last statement
   * @throws {NoResponse} when it times out; the server may have executed it
   * @throws {ConnectionLost} when the connection fails; the server may have executed it
   * @throws an error with a SQLSTATE when the server reports one
   */
  run(statement: Statement, timeoutMs?: number): Promise<TextRow[]>;

  /**
   * Runs COMMIT, or one statement outside a transaction, which commits by itself.
   *
   * @throws also when the server warns that the wait for a synchronous standby was cancelled
   *   (https://www.postgresql.org/docs/current/warm-standby.html, section 26.2.8.3)
   */
  commit(statement: Statement): Promise<TextRow[]>;

  /**
   * Runs work in a transaction, and rolls it back if the work fails. If the rollback fails, too, the
   * connection is closed, which ends the transaction.
   */
  transaction(work: () => Promise<void>): Promise<void>;

  /** @param timeoutMs by default the timeout for commands */
  setStatementTimeout(timeoutMs?: number): Promise<void>;

  /** Closes the connection at once and cancels the statement in flight. */
  destroy(): void;

  /** Closes the connection with a goodbye message, if the server still responds. */
  close(): Promise<void>;
}
