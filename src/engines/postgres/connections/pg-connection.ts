import type { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import type { ConnectionOptions } from 'node:tls';
import type pg from 'pg';
import { type Clock, SYSTEM_CLOCK } from '../../../core/clock.ts';
import { StoreRejected } from '../../../core/commit/store-errors.ts';
import { STATEMENT_TIMEOUT_MS, type Statement, type TextRow } from '../connection.ts';
import {
  ConnectionLost,
  connectionError,
  HostIsReadOnly,
  kindOf,
  NoResponse,
  sqlStateOf,
} from '../postgres-errors.ts';
import { type HostAddress, hostName, type PostgresAddress } from '../postgres-url.ts';
import { TOPOLOGY_SQL, topologyOf } from '../topology/choose-topology.ts';
import { ONE_SERVER } from '../topology/one-server.ts';
import type { StoreConnection, Topology } from '../topology/topology.ts';
import { type CancelKey, sendCancelRequest } from './cancel-request.ts';
import { requireChannelBinding } from './channel-binding.ts';
import { copyIn } from './copy-query.ts';
import { pgClientOf } from './pg-client.ts';
import { PROCESS_ID, poolerError, rejectPooler } from './pooler.ts';
import { SET_SESSION } from './session-settings.ts';
import { isAboutTls, tlsFailure, tlsOptions } from './tls.ts';
import { withinTimeout } from './within-timeout.ts';

const COMMAND_STATEMENT_TIMEOUT_MS = 60_000;
const CLOSE_TIMEOUT_MS = 1_000;
/** The server cancels a statement this much before its timeout, so none keeps running there. */
const STATEMENT_CANCEL_MARGIN_MS = 250;

/** Every value stays text, so no id is converted to a double. */
const AS_TEXT = { getTypeParser: () => (text: string) => text } as unknown as pg.CustomTypesConfig;
/** A notice with this SQLSTATE is not a warning. */
const SUCCESSFUL_COMPLETION = '00000';

/**
 * Whether a warning may say that a commit has not reached a standby. The text of a warning depends
 * on the language of the server, so the name of its C function decides. A warning without a function
 * may mean anything.
 */
export function mayConcernCommit(routine: string | undefined, { commitWarnings }: Topology): boolean {
  return routine === undefined || commitWarnings.includes(routine);
}

type Session = Pick<StoreConnection, 'run' | 'commit' | 'destroy'>;

/** As {@link Connection.transaction}, also for the model of a connection. */
export async function inTransaction(connection: Session, work: () => Promise<void>): Promise<void> {
  try {
    await connection.run({ text: 'BEGIN' });
    await work();
    await connection.commit({ text: 'COMMIT' });
  } catch (error) {
    if (kindOf(error) !== 'connectionLost')
      await connection.run({ text: 'ROLLBACK' }).catch(() => connection.destroy());
    throw error;
  }
}

/** A {@link StoreConnection} of the library pg. */
export class PgConnection implements StoreConnection {
  readonly host: HostAddress;
  /** Known at the end of {@link #setUp}. */
  topology: Topology = ONE_SERVER;
  deadline = Number.POSITIVE_INFINITY;
  readonly #client: pg.Client;
  readonly #socket: Socket;
  readonly #clock: Clock;
  #statementTimeoutMs = STATEMENT_TIMEOUT_MS;
  #broken: Error | undefined;
  #warning: string | undefined;
  #isInFlight = false;
  #isBehindProxy = false;

  private constructor(host: HostAddress, client: pg.Client, socket: Socket, clock: Clock) {
    this.host = host;
    this.#client = client;
    this.#socket = socket;
    this.#clock = clock;
    client.on('error', error => {
      this.#broken ??= connectionError(error);
    });
    client.on('notice', ({ code, message, routine }) => {
      if (code !== SUCCESSFUL_COMPLETION && mayConcernCommit(routine, this.topology)) this.#warning = message;
    });
  }

  /**
   * Opens and prepares a connection.
   *
   * @param timeoutMs for the connection and the authentication
   * @throws {HostIsReadOnly}
   * @throws {ConnectionLost} when the host does not respond in time
   * @throws {StoreRejected} when the database cannot store plants
   */
  static async open(
    address: PostgresAddress,
    host: HostAddress,
    timeoutMs: number,
    signal: AbortSignal,
    clock: Clock = SYSTEM_CLOCK,
  ): Promise<PgConnection> {
    const tls = tlsOptions(address, host);
    try {
      return await PgConnection.#openWith(address, host, tls, timeoutMs, signal, clock);
    } catch (error) {
      if (tls === false || address.tlsMode !== 'prefer' || !isAboutTls(error)) throw error;
      return await PgConnection.#openWith(address, host, false, timeoutMs, signal, clock);
    }
  }

  get isBroken(): boolean {
    return this.#broken !== undefined;
  }

  async run(statement: Statement, timeoutMs = this.#statementTimeoutMs): Promise<TextRow[]> {
    if (this.#broken !== undefined) throw this.#broken;
    const limitMs = Math.ceil(Math.max(1, Math.min(timeoutMs, this.deadline - this.#clock.now())));
    this.#isInFlight = true;
    try {
      const onTimeout = () => new NoResponse(limitMs, limitMs < timeoutMs);
      const rows = await withinTimeout(this.#send(statement), limitMs, onTimeout, this.#clock);
      this.#isInFlight = false;
      return rows;
    } catch (error) {
      this.#isInFlight = sqlStateOf(error) === undefined;
      if (error instanceof NoResponse) throw error;
      // When a connection is lost, pg emits an error event before it rejects the statement.
      throw this.#isInFlight ? (this.#broken ?? error) : error;
    }
  }

  async commit(statement: Statement): Promise<TextRow[]> {
    this.#warning = undefined;
    const rows = await this.run(statement);
    if (this.#warning !== undefined)
      throw new ConnectionLost(`the commit is not confirmed: ${this.#warning}`);
    return rows;
  }

  transaction(work: () => Promise<void>): Promise<void> {
    return inTransaction(this, work);
  }

  async setStatementTimeout(timeoutMs = COMMAND_STATEMENT_TIMEOUT_MS): Promise<void> {
    await this.run({ text: `SET statement_timeout = ${timeoutMs - STATEMENT_CANCEL_MARGIN_MS}` });
    this.#statementTimeoutMs = timeoutMs;
  }

  destroy(): void {
    this.#broken ??= new ConnectionLost('the connection was aborted');
    // A destroyed socket has no remote address, so the cancel request comes first.
    if (this.#isInFlight) this.#cancel();
    this.#isInFlight = false;
    this.#socket.destroy();
  }

  async close(): Promise<void> {
    const timer = setTimeout(() => this.destroy(), CLOSE_TIMEOUT_MS);
    if (this.#broken === undefined) await this.#client.end();
    clearTimeout(timer);
    this.destroy();
  }

  #send({ copyRows, ...statement }: Statement): Promise<TextRow[]> {
    const query = { ...statement, rowMode: 'array' as const, types: AS_TEXT };
    return copyRows === undefined
      ? this.#client.query<TextRow>(query).then(({ rows }) => rows)
      : copyIn<TextRow>(this.#client, query, copyRows);
  }

  /**
   * Cancels the statement in flight. A commit that waits for a standby ignores both
   * `statement_timeout` and the end of its connection. Each such commit would occupy one of
   * `max_connections`.
   */
  #cancel(): void {
    const key = this.#cancelKey;
    if (key !== undefined) sendCancelRequest(this.host, this.#socket.remoteAddress, key);
  }

  /** Undefined if the server, or a proxy in front of it, sent no key. */
  get #cancelKey(): CancelKey | undefined {
    // The types of pg lack these members.
    const { processID, secretKey } = this.#client as unknown as Record<keyof CancelKey, number | null>;
    return processID === null || secretKey === null ? undefined : { processID, secretKey };
  }

  /** Emits the messages of the server, under the names of pg. */
  get #messages(): EventEmitter {
    return (this.#client as unknown as { connection: EventEmitter }).connection;
  }

  static async #openWith(
    address: PostgresAddress,
    host: HostAddress,
    ssl: ConnectionOptions | false,
    timeoutMs: number,
    signal: AbortSignal,
    clock: Clock,
  ): Promise<PgConnection> {
    signal.throwIfAborted();
    const { client, socket, connect } = pgClientOf(address, host, ssl, timeoutMs);
    const connection = new PgConnection(host, client, socket, clock);
    const checkBinding =
      address.channelBinding === 'require'
        ? requireChannelBinding(connection.#messages, socket, ssl !== false)
        : undefined;
    // This applies until `#setUp` ends: a server that accepts a connection late may respond late.
    connection.#statementTimeoutMs = Math.max(timeoutMs, STATEMENT_TIMEOUT_MS);
    const abort = (): void => connection.destroy();
    signal.addEventListener('abort', abort);
    try {
      await connect();
      checkBinding?.();
      await connection.#setUp();
      if (connection.#isBehindProxy) {
        const processOf = (ms: number) => connection.run({ text: PROCESS_ID }, ms);
        await rejectPooler(host, processOf, pgClientOf(address, host, ssl, timeoutMs));
      }
      return connection;
    } catch (error) {
      connection.destroy();
      throw ssl === false ? error : tlsFailure(error);
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }

  async #setUp(): Promise<void> {
    const [row] = await this.run({
      text: `SELECT current_setting('transaction_read_only'), current_setting('server_encoding'),
        current_setting('synchronous_commit', true), ${TOPOLOGY_SQL},
        pg_backend_pid()`,
    });
    const [readOnly, encoding, synchronousCommit, topology, processID] = row!;
    if (readOnly === 'on') {
      throw new HostIsReadOnly(
        `${hostName(this.host)} is read-only (a standby, or default_transaction_read_only is on)`,
      );
    }
    if (encoding !== 'UTF8') {
      throw new StoreRejected(`the database has the encoding ${encoding}, which cannot store every name`, {
        advice: "create one with CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0",
      });
    }
    await this.run({ text: SET_SESSION });
    await this.setStatementTimeout(STATEMENT_TIMEOUT_MS);
    if (synchronousCommit !== null) {
      // A 200 requires a flushed commit, whatever the default of the server is or becomes later.
      const value = synchronousCommit === 'off' ? 'on' : synchronousCommit;
      await this.run({ text: `SET synchronous_commit = ${value}` });
    }
    this.topology = topologyOf(topology!);
    // A server names its process in the key for cancel requests. A proxy may make its own keys.
    this.#isBehindProxy = processID !== String(this.#cancelKey?.processID);
    if (!this.#isBehindProxy) return;
    const [now] = await this.run({ text: `SELECT pg_backend_pid(), current_setting('client_min_messages')` });
    if (now![0] !== processID || now![1] !== 'warning') throw poolerError();
  }
}
