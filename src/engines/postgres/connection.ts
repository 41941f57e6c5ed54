import type { Clock } from '../../core/clock.ts';
import type { PlantQueue } from '../../core/commit/plant-commits.ts';
import type { NewPlant } from '../../core/contract/plant.ts';
import type { Problem } from '../../core/problem.ts';
import type { HostAddress, PostgresAddress } from './postgres-url.ts';

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
  /** How the database of the connection stores `plant_revision`. */
  readonly layout: TableLayout;
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

/** Connections to one server, which operations share. */
export interface Pool {
  /** Number of open connections, and of those that are being opened. */
  readonly connections: number;

  /**
   * Runs an operation on a connection. Retries temporary failures until the deadline.
   *
   * @param work must find out what an earlier attempt has done
   * @param deadline by default after `OPERATION_TIMEOUT_MS`
   * @throws {StoreUnavailable}
   */
  use<T>(work: (connection: Connection) => Promise<T>, deadline?: number): Promise<T>;

  /** Closes every connection. A connection in use is closed when its operation ends. */
  close(): Promise<void>;
}

/**
 * How a database stores the table `plant_revision`, and what differs for that reason. A connection
 * learns it from its database (`choose-layout.ts`).
 *
 * When the table may lose or change rows, the statements for revisions fail, or else
 * {@link PlantServers.use} does.
 */
export interface TableLayout {
  /**
   * Whether rows may be on other servers than that of the connection. A statement may then fail
   * because of another server, also after that server has committed rows. One commit does not
   * confirm what other servers committed before. The server of the connection does not know the
   * locks and the rows of the others.
   */
  readonly spansServers: boolean;

  /** The C functions whose warnings may say that a commit has not reached a standby. */
  readonly commitWarnings: readonly string[];

  /**
   * An INSERT of so many rows, each with the `REVISION_COLUMNS`. It skips a row whose key exists, and
   * returns the ids of the others. A second column is `on` if the connection had lost
   * `synchronous_commit`.
   */
  insertText(rowCount: number): string;

  /**
   * A SELECT that follows a COPY in its transaction. It returns what the INSERT returns of one row,
   * without an id.
   */
  readonly copyGuardText: string;

  /** A SELECT of the latest revision of each id in the array `$1`. */
  readonly latestText: string;

  /**
   * Selects three revisions of each id: with this number, with the number before it, and the latest;
   * possibly more. The rows are in the order of ids and numbers.
   */
  revisionsAround(ids: readonly bigint[], numbers: readonly number[]): Statement;

  /**
   * Returns when the latest revisions of these plants are durable, also those of other instances.
   *
   * @param missing those of the plants that a lookup has not found. A server that another one has
   *   replaced may lack them, and it confirms no commit.
   */
  confirmLatest(
    connection: Connection,
    plants: readonly { plant: NewPlant }[],
    missing: readonly { plant: NewPlant }[],
  ): Promise<void>;

  /** An SQL expression for the bytes of the table with its indexes. */
  readonly tableSize: string;

  /** Statements for a table that was created in the same transaction. */
  readonly newTableTexts: readonly string[];

  /** Statements for the table after the schema steps, at each start. */
  readonly tableTexts: readonly string[];

  /**
   * Prepares a connection to a server that an address names.
   *
   * @throws {StoreRejected} if that server lacks a part of the store, such as the tokens
   */
  prepare(connection: Connection, use: 'read' | 'write'): Promise<void>;

  /**
   * Opens the servers that store the plants of a service.
   *
   * @param connection to the server of the address
   * @throws {StoreRejected} if they may lose plants
   */
  openServers(connection: Connection, service: PostgresService): Promise<PlantServers>;
}

/** What a service opens the servers of its plants with. */
export interface PostgresService {
  address: PostgresAddress;
  /** Maximum number of concurrent batches, each with its own connection. */
  connections: number;
  /** The connections to the server of the address. */
  pool: Pool;
  /** Opens a pool of further connections to the server of the address. */
  openPool(connectionsMax: number): Pool;
  /** Opens a pool for a server that the address does not name. */
  openPoolOf(host: HostAddress, prepare: (opened: Connection) => Promise<void>, connectionsMax: number): Pool;
  clock: Clock;
}

/** The servers that store the plants of a service. */
export interface PlantServers {
  /** Number of connections beside those to the server of the address. */
  readonly connections: number;

  /** @param open opens a queue that has at most so many batches in flight */
  openQueue(open: (commitsInFlightMax: number) => PlantQueue): PlantQueue;

  /**
   * Runs an operation on the server that stores this id.
   *
   * @throws {StorePartlyUnavailable} if only that server does not work
   * @throws {StoreUnavailable}
   */
  use<T>(id: bigint, work: (connection: Connection) => Promise<T>): Promise<T>;

  /** Reads again which servers there are. */
  refresh(): Promise<void>;

  /** Inspects the servers that the address does not name. @throws if none of them can be used */
  warnings(): Promise<Problem[]>;

  /** Closes all connections beside those to the server of the address. */
  close(): Promise<void>;
}
