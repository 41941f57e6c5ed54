import type { Clock } from '../../../core/clock.ts';
import type { PlantQueue } from '../../../core/commit/plant-commits.ts';
import type { NewPlant } from '../../../core/contract/plant.ts';
import type { Problem } from '../../../core/problem.ts';
import type { Connection, Statement } from '../connection.ts';
import type { HostAddress, PostgresAddress } from '../postgres-url.ts';

/**
 * Which servers store the table `plant_revision`, and what differs for that reason: one server, or
 * Citus with its workers. A connection learns it from its database (`choose-topology.ts`).
 *
 * When the table may lose or change rows, the statements for revisions fail, or else
 * {@link PlantServers.use} does.
 */
export interface Topology {
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
  openServers(connection: Connection, pools: ServicePools): Promise<PlantServers>;
}

/** A connection to a database that has a store, or gets one. */
export interface StoreConnection extends Connection {
  /** Which servers store `plant_revision` in the database of the connection. */
  readonly topology: Topology;
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
  use<T>(work: (connection: StoreConnection) => Promise<T>, deadline?: number): Promise<T>;

  /** Closes every connection. A connection in use is closed when its operation ends. */
  close(): Promise<void>;
}

/** The connections of a service to the server of its address, and how it opens further pools. */
export interface ServicePools {
  address: PostgresAddress;
  /** Maximum number of concurrent batches, each with its own connection. */
  batchesInFlightMax: number;
  /** The connections to the server of the address. */
  pool: Pool;
  /** Opens a pool of further connections to the server of the address. */
  openPool(connectionsMax: number): Pool;
  /** Opens a pool for a server that the address does not name. */
  openPoolOf(
    host: HostAddress,
    prepare: (opened: StoreConnection) => Promise<void>,
    connectionsMax: number,
  ): Pool;
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
  use<T>(id: bigint, work: (connection: StoreConnection) => Promise<T>): Promise<T>;

  /** Reads again which servers there are. */
  refresh(): Promise<void>;

  /** Inspects the servers that the address does not name. @throws if none of them can be used */
  warnings(): Promise<Problem[]>;

  /** Closes all connections beside those to the server of the address. */
  close(): Promise<void>;
}
