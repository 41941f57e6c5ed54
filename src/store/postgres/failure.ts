import { StoreMissing, StoreRejected, StoreUnavailable } from '../plant-store.ts';
import { type PostgresAddress, shownPostgresAddress } from './postgres-url.ts';

/** A statement was given up; whether it was carried out is unknown. */
export class NoResponse extends Error {
  override readonly name = 'NoResponse';
  /** It had less time than a statement has, since its operation was at an end. */
  readonly cutShort: boolean;

  constructor(timeoutMs: number, cutShort: boolean, options: ErrorOptions) {
    super(
      cutShort
        ? 'PostgreSQL did not answer in the time that was left'
        : `PostgreSQL did not answer within ${(timeoutMs / 1000).toFixed(1)} s; is a table locked, or a synchronous standby away?`,
      options,
    );
    this.cutShort = cutShort;
  }
}

export class HostIsReadOnly extends Error {
  override readonly name = 'HostIsReadOnly';
}

export class TlsFailed extends StoreRejected {
  constructor(message: string, options: ErrorOptions) {
    super(`${message}; check sslmode, sslrootcert, sslcert and sslkey`, options);
  }
}

/** https://www.postgresql.org/docs/current/errcodes-appendix.html; undefined when it is no error of the server. */
export function sqlStateOf(error: unknown): string | undefined {
  const { code, severity } = error as { code?: unknown; severity?: unknown };
  return typeof code === 'string' && severity !== undefined ? code : undefined;
}

export const TOO_MANY_CONNECTIONS = '53300';
export const INSUFFICIENT_PRIVILEGE = '42501';
export const UNDEFINED_TABLE = '42P01';
export const UNIQUE_VIOLATION = '23505';
const READ_ONLY = '25006';

/** What a person does about a right that is missing. */
export const GRANTS = 'docs/postgresql-grants.sql has the statements that grant it';

/** What became of a statement that failed. */
type FailureKind =
  /** The connection is of no more use; what was sent on it may have been carried out. */
  | 'connectionLost'
  /** Nothing was done, and the same may be sent again at once. */
  | 'retry'
  /** Nothing was done, and nothing will be before somebody changes something. */
  | 'final';

/**
 * Shut down or restarting (57P01 to 57P05), connection exceptions (class 08), and hosts that no longer take writes; and
 * statements that this connection has prepared and the server no longer knows, or whose columns have changed since.
 */
const CONNECTION_LOST = /^(?:57P0[1-5]|08...|25006|53300|0A000|26000|42P05)$/;
/** Serialization failure, deadlock, statement timeout, lock timeout. */
const RETRY = /^(?:40001|40P01|57014|55P03)$/;

export function kindOf(error: unknown): FailureKind {
  if (error instanceof StoreRejected) return 'final';
  const sqlState = sqlStateOf(error);
  // Without an SQLSTATE the connection was cut or closed, or was silent for too long.
  if (sqlState === undefined || CONNECTION_LOST.test(sqlState)) return 'connectionLost';
  return RETRY.test(sqlState) ? 'retry' : 'final';
}

export function isReadOnlyError(error: unknown): boolean {
  return error instanceof HostIsReadOnly || sqlStateOf(error) === READ_ONLY;
}

/** Whether a failure to connect needs a person, and is not an outage that passes. */
export function isRejection(error: unknown): boolean {
  return error instanceof StoreRejected || explanationOf(error) !== undefined;
}

/** Why the store cannot be opened, as one line that says what to do. */
export function openFailure(error: unknown, address: PostgresAddress): StoreRejected {
  const reason = error instanceof StoreRejected ? error.message : (explanationOf(error) ?? outageOf(error));
  const Rejection = error instanceof StoreMissing ? StoreMissing : StoreRejected;
  return new Rejection(`the store at ${shownPostgresAddress(address)} cannot be opened: ${reason}`, {
    cause: error,
  });
}

/** The store cannot be used now. The cause goes to the log; it holds no password. */
export function unavailable(error: unknown): StoreUnavailable {
  if (error instanceof StoreUnavailable) return error;
  return new StoreUnavailable(messageOf(error), { cause: error });
}

function explanationOf(error: unknown): string | undefined {
  const message = messageOf(error);
  switch (sqlStateOf(error)) {
    case '28P01':
      return 'the server refuses the password; check it, and the user';
    case '28000':
      return `the server does not let this user in (${message}); check the user and sslmode, and pg_hba.conf on the server`;
    case '3D000':
      return 'there is no such database; make it with CREATE DATABASE, or name another';
    case INSUFFICIENT_PRIVILEGE:
      return `the user lacks a right (${message}); ${GRANTS}`;
    case '42704':
    case '22023':
      return `the server refuses a setting (${message}); check the parameter options`;
  }
  return undefined;
}

function outageOf(error: unknown): string {
  const message = messageOf(error);
  if (error instanceof HostIsReadOnly) return `${message}; name the host that takes writes`;
  const sqlState = sqlStateOf(error);
  if (sqlState === TOO_MANY_CONNECTIONS) {
    return `the server has no connection left (${message}); raise max_connections there, or lower --connections`;
  }
  if (sqlState !== undefined) return `the server says: ${message} (SQLSTATE ${sqlState})`;
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'ECONNREFUSED' || code === 'ENOENT') {
    return 'nothing answers there; is PostgreSQL running, and is the address right?';
  }
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'the name of the host is not known; check it';
  return `${message}; is PostgreSQL running, and is the address right?`;
}

/** Where several addresses of one host all failed, Node's error has a code and no message. */
function messageOf(error: unknown): string {
  const { message, code } = error as NodeJS.ErrnoException;
  return message || code || 'it failed without a message';
}
