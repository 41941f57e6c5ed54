import {
  StoreDamaged,
  StoreInternalError,
  StoreMissing,
  StoreRejected,
  StoreUnavailable,
} from '../../core/commit/store-errors.ts';
import type { Problem } from '../../core/problem.ts';
import { type PostgresAddress, shownPostgresAddress } from './postgres-url.ts';

/** The connection is unusable, or was not made. The server may have executed a statement. */
export class ConnectionLost extends Error {
  override readonly name: string = 'ConnectionLost';
  /** A code of Node, such as ECONNREFUSED. */
  readonly code: string | undefined;

  constructor(message: string, options: ErrorOptions = {}) {
    super(message, options);
    this.code = (options.cause as NodeJS.ErrnoException | undefined)?.code;
  }
}

/**
 * Makes a {@link ConnectionLost} of an error of the network or of pg. Returns an error of the
 * server, a rejection or a {@link ConnectionLost} as it is.
 */
export function connectionError(error: Error): Error {
  if (error instanceof StoreRejected || error instanceof ConnectionLost) return error;
  if (sqlStateOf(error) !== undefined) return error;
  return new ConnectionLost(error.message, { cause: error });
}

/** A statement timed out. It is unknown whether the server executed it. */
export class NoResponse extends ConnectionLost {
  override readonly name = 'NoResponse';
  /** Whether the timeout was shorter than usual, because the operation was near its deadline. */
  readonly cutShort: boolean;

  constructor(timeoutMs: number, cutShort: boolean) {
    const time = cutShort ? 'in the remaining time' : `within ${(timeoutMs / 1000).toFixed(1)} s`;
    super(`PostgreSQL did not respond ${time}`);
    this.cutShort = cutShort;
  }
}

/** The host is a standby, or its transactions are read-only by default. */
export class HostIsReadOnly extends ConnectionLost {
  override readonly name = 'HostIsReadOnly';
}

/** The server offers no TLS, or the handshake failed. */
export class TlsFailed extends StoreRejected {
  override name = 'TlsFailed';

  constructor(fault: string, options: ErrorOptions) {
    super(fault, { ...options, advice: 'check sslmode, sslrootcert, sslcert and sslkey' });
  }
}

/**
 * Returns the SQLSTATE of an error of the server, and undefined for any other error
 * (https://www.postgresql.org/docs/current/errcodes-appendix.html).
 */
export function sqlStateOf(error: unknown): string | undefined {
  const { code, severity } = error as { code?: unknown; severity?: unknown };
  return typeof code === 'string' && severity !== undefined ? code : undefined;
}

const TOO_MANY_CONNECTIONS = '53300';
const DISK_FULL = '53100';
export const INSUFFICIENT_PRIVILEGE = '42501';
export const KEY_EXISTS = '23505';

export const GRANTS = 'grant it with the statements in docs/postgresql-grants.sql';

/** What an operation does after a failure. */
type FailureKind =
  /** The connection cannot be used again. The server may have executed the statement. */
  | 'connectionLost'
  /** Another server failed, and may have executed the statement. Ours still works. */
  | 'otherServerLost'
  /** Nothing was changed. The statement may be retried at once. */
  | 'retry'
  /** Nothing was changed. A retry fails until an operator fixes the cause. */
  | 'final'
  /** Our own code failed, at any time. A retry would probably fail in the same way. */
  | 'internal';

/**
 * The server shuts down (57P), has no connection left (53300) or became read-only (25006). The
 * connection failed (08). A prepared statement is lost (26000), exists already (42P05) or has other
 * columns (0A000).
 */
const CONNECTION_LOST = /^(?:57P0[1-5]|08...|25006|53300|0A000|26000|42P05)$/;
/** A server reports its own shutdown, or the loss of another server. */
const SERVER_LOST = /^(?:57P0[1-5]|08...)$/;
/** The data or an index is corrupted, or stored bytes are not UTF-8 (22021). */
const DAMAGED = /^(?:XX00[12]|22021)$/;
/** A conflict (40001), deadlock or timeout ended the statement, or a key was taken (23505). */
const RETRY = /^(?:40001|40P01|57014|55P03|23505)$/;

/** @param spansServers whether the server may report the errors of other servers as its own */
export function kindOf(error: unknown, spansServers = false): FailureKind {
  if (error instanceof StoreRejected || error instanceof StoreUnavailable) return 'final';
  if (error instanceof ConnectionLost) return 'connectionLost';
  const sqlState = sqlStateOf(error);
  if (spansServers && sqlState !== undefined && SERVER_LOST.test(sqlState)) return 'otherServerLost';
  if (sqlState === undefined) return 'internal';
  if (CONNECTION_LOST.test(sqlState)) return 'connectionLost';
  return RETRY.test(sqlState) ? 'retry' : 'final';
}

/** Whether an operator must fix the cause of a failed connection. Otherwise it is an outage. */
export function isRejection(error: unknown): boolean {
  return error instanceof StoreRejected || explanationOf(error) !== undefined;
}

/** Makes the rejection of a store that cannot be opened. Returns an internal error as it is. */
export function openFailure(cause: unknown, address: PostgresAddress): unknown {
  if (kindOf(cause) === 'internal') return cause;
  const Rejection = cause instanceof StoreMissing ? StoreMissing : StoreRejected;
  const { fault, advice } = reasonOf(cause);
  const store = `the store at ${shownPostgresAddress(address)}`;
  return new Rejection(`${store} cannot be opened: ${fault}`, { advice, cause });
}

/** Explains in one line why a server cannot be used, and what to do. */
function reasonOf(error: unknown): Problem {
  if (error instanceof StoreRejected) return error;
  if (kindOf(error) === 'internal') return new StoreInternalError(error);
  return explanationOf(error) ?? outageOf(error);
}

/**
 * Wraps a failure in a service, which goes on after it: a rejection is an outage there, too. The
 * message and the cause, for the log, contain no password.
 */
export function unavailable(error: unknown): StoreUnavailable | StoreInternalError {
  if (error instanceof StoreUnavailable || error instanceof StoreInternalError) return error;
  if (kindOf(error) === 'internal') return new StoreInternalError(error);
  const Failure = DAMAGED.test(sqlStateOf(error) ?? '') ? StoreDamaged : StoreUnavailable;
  const { fault, advice } = reasonOf(error);
  return new Failure(fault, { advice, cause: error });
}

/** Wraps a failure of a store that a command uses. Returns an error of the store as it is. */
export function storeFailure(error: unknown): StoreUnavailable | StoreInternalError | StoreRejected {
  return error instanceof StoreRejected ? error : unavailable(error);
}

/** Runs the work of a command, and wraps its failure with {@link storeFailure}. */
export async function orStoreFailure<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw storeFailure(error);
  }
}

function explanationOf(error: unknown): Problem | undefined {
  const message = messageOf(error);
  switch (sqlStateOf(error)) {
    case '28P01':
      return { fault: 'the server rejects the password', advice: 'check the password and the user' };
    case '28000':
      return {
        fault: `the server rejects this user (${message})`,
        advice: 'check the user and sslmode, and pg_hba.conf on the server',
      };
    case '3D000':
      return {
        fault: 'the database does not exist',
        advice: 'create it with CREATE DATABASE, or name another',
      };
    case INSUFFICIENT_PRIVILEGE:
      return { fault: `the user lacks a right (${message})`, advice: GRANTS };
    case '42704':
    case '22023':
      return { fault: `the server rejects a setting (${message})`, advice: 'check the parameter options' };
  }
  return undefined;
}

function outageOf(error: unknown): Problem {
  const message = messageOf(error);
  if (error instanceof NoResponse) {
    const advice =
      'check whether it hangs or a table is locked, its disk, its synchronous standbys and the network';
    return { fault: message, advice };
  }
  if (error instanceof HostIsReadOnly) return { fault: message, advice: 'name the host that accepts writes' };
  const sqlState = sqlStateOf(error);
  if (sqlState === TOO_MANY_CONNECTIONS) {
    const advice = 'raise max_connections there, or lower --connections';
    return { fault: `the server has no connection left (${message})`, advice };
  }
  if (sqlState === DISK_FULL)
    return { fault: 'the disk of the database server is full', advice: 'free space there' };
  if (sqlState !== undefined) return { fault: `the server reports: ${message} (SQLSTATE ${sqlState})` };
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'ECONNREFUSED' || code === 'ENOENT')
    return { fault: 'no server is listening there', advice: 'start PostgreSQL, or correct the address' };
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return { fault: 'the host name is unknown', advice: 'check it' };
  return {
    fault: message,
    advice: 'check whether PostgreSQL runs or hangs, the network and the address',
  };
}

/**
 * Makes one line of the message of an error. If all addresses of a host fail, the error of Node has
 * a code but no message. A message of the server may quote any text of clients, so control
 * characters are replaced.
 */
function messageOf(error: unknown): string {
  const { message, code } = error as NodeJS.ErrnoException;
  const text = message || code || 'failed without a message';
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, ' ');
}
