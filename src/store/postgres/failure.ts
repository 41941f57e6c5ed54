import { StoreMissing, StoreRefused, StoreUnavailable } from '../plant-store.ts';
import { type PostgresAddress, shownPostgresAddress } from './postgres-url.ts';

/** The server accepted a statement, and did not say that its commit is as durable as it is set up to be. */
export class CommitNotConfirmed extends Error {
  constructor(notice: string) {
    super(`the commit is not confirmed: ${notice}`);
    this.name = 'CommitNotConfirmed';
  }
}

/** A row is neither inserted nor there: it would be tried for ever. */
export class InsertDoesNothing extends StoreRefused {
  constructor() {
    super(
      'PostgreSQL takes a plant and does not keep it; look for a trigger, a rule or row-level security on plant_revision',
    );
  }
}

/** A statement was given up; what became of it is unknown. */
export class NoAnswer extends Error {
  /** It had less time than a statement has, since its operation was at an end. */
  readonly cutShort: boolean;

  constructor(waitMs: number, cutShort: boolean, options: ErrorOptions) {
    super(
      cutShort
        ? 'PostgreSQL did not answer in the time that was left'
        : `PostgreSQL did not answer within ${(waitMs / 1000).toFixed(1)} s; is a table locked, or a synchronous standby away?`,
      options,
    );
    this.name = 'NoAnswer';
    this.cutShort = cutShort;
  }
}

/** The host answers, and takes no writes: a standby, or one that was made read-only. */
export class HostIsReadOnly extends Error {
  constructor(host: string) {
    super(`${host} is read-only (a standby, or default_transaction_read_only is on)`);
    this.name = 'HostIsReadOnly';
  }
}

/** The connection cannot be protected as it was asked for; the message says why. */
export class TlsFailed extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'TlsFailed';
  }
}

/** The server asks for a password, and there is none. */
export class PasswordWanted extends Error {
  /** @param passedOver why a password file was not used, if there is one */
  constructor(passedOver: string) {
    super(`the server asks for a password${passedOver && ` (${passedOver})`}`);
    this.name = 'PasswordWanted';
  }
}

/** What became of a statement that failed. */
export type FailureKind =
  /** The connection is of no more use; what was sent on it may have been done. */
  | 'connectionLost'
  /** Nothing was done, and the same may be done again at once. */
  | 'retry'
  /** Nothing was done, and will not be before somebody changes something. */
  | 'final';

/** `SQLSTATE`, https://www.postgresql.org/docs/current/errcodes-appendix.html; undefined when no server said anything. */
export function sqlStateOf(error: unknown): string | undefined {
  const { code, severity } = error as { code?: unknown; severity?: unknown };
  return typeof code === 'string' && severity !== undefined ? code : undefined;
}

const READ_ONLY = '25006';
export const TOO_MANY_CONNECTIONS = '53300';
export const INSUFFICIENT_PRIVILEGE = '42501';
export const UNDEFINED_TABLE = '42P01';
export const UNIQUE_VIOLATION = '23505';

/** What a person does about a right that is missing. */
export const GRANTS = 'docs/postgresql-grants.sql has the statements that grant it';

/**
 * Shut down or restarting (57P01 to 57P05), connection exceptions (class 08), and hosts that no longer take writes; and
 * statements that this connection has prepared and the server no longer knows, or for columns that have changed since.
 */
const CONNECTION_LOST = /^(?:57P0[1-5]|08...|25006|53300|0A000|26000|42P05)$/;
/** Serialization failure, deadlock, statement timeout, lock timeout. */
const RETRY = /^(?:40001|40P01|57014|55P03)$/;

export function kindOf(error: unknown): FailureKind {
  if (error instanceof StoreRefused) return 'final';
  const sqlState = sqlStateOf(error);
  // Without an answer from the server: cut, closed, or silent for too long.
  if (sqlState === undefined || CONNECTION_LOST.test(sqlState)) return 'connectionLost';
  return RETRY.test(sqlState) ? 'retry' : 'final';
}

/** Whether a failure to connect is for a person to mend, and not an outage that passes. */
export function isRefusal(error: unknown): boolean {
  return explanationOf(error) !== undefined;
}

/**
 * Why the store cannot be opened, as one line that says what to do.
 *
 * @param error of the connection, or of a statement at start
 */
export function openFailure(error: unknown, address: PostgresAddress): StoreRefused {
  const reason = error instanceof StoreRefused ? error.message : (explanationOf(error) ?? outageOf(error));
  const Refusal = error instanceof StoreMissing ? StoreMissing : StoreRefused;
  return new Refusal(`the store at ${shownPostgresAddress(address)} cannot be opened: ${reason}`, {
    cause: error,
  });
}

/** The store is not to be had now. The cause goes to the log; it holds no password. */
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
  if (error instanceof PasswordWanted) {
    return `${message}; give one with PGPASSWORD, PGPASSFILE or PLANT_STORE_DATABASE_PASSWORD_FILE`;
  }
  if (error instanceof TlsFailed) return `${message}; check sslmode, sslrootcert, sslcert and sslkey`;
  return undefined;
}

function outageOf(error: unknown): string {
  if (error instanceof HostIsReadOnly) return `${error.message}; name the host that takes writes`;
  const message = messageOf(error);
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

/** Of several addresses of one host that all failed, Node has a code and no message. */
function messageOf(error: unknown): string {
  const { message, code } = error as NodeJS.ErrnoException;
  return message || code || 'it failed without a word';
}

/** Whether the host answered that it takes no writes. */
export function saysReadOnly(error: unknown): boolean {
  return error instanceof HostIsReadOnly || sqlStateOf(error) === READ_ONLY;
}
