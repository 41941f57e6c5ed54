import { connect, Socket } from 'node:net';
import type { ConnectionOptions } from 'node:tls';
import pg from 'pg';
import { StoreRejected } from '../plant-store.ts';
import { HostIsReadOnly, NoResponse, sqlStateOf } from './failure.ts';
import {
  CLOSE_TIMEOUT_MS,
  COMMAND_STATEMENT_TIMEOUT_MS,
  CONNECT_TIMEOUT_MS,
  KEEP_ALIVE_DELAY_MS,
  STATEMENT_CANCEL_MARGIN_MS,
  STATEMENT_TIMEOUT_MS,
} from './limits.ts';
import { passwordFromFile } from './password-file.ts';
import type { HostAddress, PostgresAddress } from './postgres-url.ts';
import { isAboutTls, tlsFailure, tlsOptions } from './tls-attempts.ts';

export interface Statement {
  text: string;
  values?: unknown[];
  /** A statement with a name is prepared once on each connection. */
  name?: string;
}

/** A row as the server sent it: text, or null. */
export type TextRow = (string | null)[];

/** Every value stays the text that the server sent: no id goes through a double. */
const AS_TEXT = { getTypeParser: () => (text: string) => text } as unknown as pg.CustomTypesConfig;
/** The SQLSTATE of a notice that is no warning. */
const SUCCESSFUL_COMPLETION = '00000';
/** What pg says when the timeout of a query is over; it has no other mark. */
const READ_TIMEOUT = 'Query read timeout';
/** https://www.postgresql.org/docs/current/protocol-message-formats.html, CancelRequest */
const CANCEL_REQUEST = 80_877_102;

/** A connection to a host that takes writes. One statement at a time. */
export class Connection {
  readonly host: HostAddress;
  /** Citus spreads the tables of this server over others. */
  isCitus = false;
  /** Nothing on it takes longer than this, by the monotonic clock. */
  deadline = Number.POSITIVE_INFINITY;
  readonly #client: pg.Client;
  readonly #socket: Socket;
  #statementTimeoutMs = STATEMENT_TIMEOUT_MS;
  #broken: Error | undefined;
  #warning: string | undefined;
  /** A statement was sent, and the server has not said what became of it. */
  #isInFlight = false;

  private constructor(host: HostAddress, client: pg.Client, socket: Socket) {
    this.host = host;
    this.#client = client;
    this.#socket = socket;
    client.on('error', error => {
      this.#broken ??= error;
    });
    client.on('notice', ({ code, message }) => {
      if (code !== SUCCESSFUL_COMPLETION) this.#warning = message;
    });
  }

  /**
   * Connects to one host.
   *
   * @param unwanted gives up at once: a silent host would keep the process from its end until the timeout
   * @throws {HostIsReadOnly} when it answers and takes no writes
   * @throws {StoreRejected} when the database cannot hold a plant store
   */
  static async open(
    address: PostgresAddress,
    host: HostAddress,
    unwanted?: AbortSignal,
  ): Promise<Connection> {
    const tls = tlsOptions(address, host);
    try {
      return await Connection.#openWith(address, host, tls, unwanted);
    } catch (error) {
      if (tls === false || address.tlsMode !== 'prefer' || !isAboutTls(error)) throw error;
      return await Connection.#openWith(address, host, false, unwanted);
    }
  }

  get isBroken(): boolean {
    return this.#broken !== undefined;
  }

  /** @param timeoutMs gives the statement up after this; whether it was carried out is then unknown */
  async run(statement: Statement, timeoutMs = this.#statementTimeoutMs): Promise<TextRow[]> {
    if (this.#broken !== undefined) throw this.#broken;
    const limitMs = Math.ceil(Math.max(1, Math.min(timeoutMs, this.deadline - performance.now())));
    // pg takes a timeout for one query, which its types do not have.
    const limits = { rowMode: 'array' as const, types: AS_TEXT, query_timeout: limitMs };
    this.#isInFlight = true;
    try {
      const { rows } = await this.#client.query<TextRow>({ ...statement, ...limits });
      this.#isInFlight = false;
      return rows;
    } catch (error) {
      this.#isInFlight = sqlStateOf(error) === undefined;
      throw (error as Error).message === READ_TIMEOUT
        ? new NoResponse(limitMs, limitMs < timeoutMs, { cause: error })
        : error;
    }
  }

  /**
   * Runs one statement that commits by itself, or COMMIT.
   *
   * When the wait for a synchronous standby is cut short, PostgreSQL reports success and a warning: the commit is on
   * the disk of this host alone (https://www.postgresql.org/docs/current/warm-standby.html, section 26.2.8.3).
   *
   * @throws when the server warned
   */
  async commit(statement: Statement): Promise<TextRow[]> {
    this.#warning = undefined;
    const rows = await this.run(statement);
    if (this.#warning !== undefined) throw new Error(`the commit is not confirmed: ${this.#warning}`);
    return rows;
  }

  /** For the command line: statements may take longer, and the connection may idle as long as it likes. */
  async allowLongStatements(): Promise<void> {
    this.#statementTimeoutMs = COMMAND_STATEMENT_TIMEOUT_MS;
    const timeoutMs = COMMAND_STATEMENT_TIMEOUT_MS - STATEMENT_CANCEL_MARGIN_MS;
    await this.run({ text: `SET statement_timeout = ${timeoutMs}` });
    // Only those that the server knows: one is new in version 14, another in 17.
    await this.run({
      text: `SELECT set_config(name, '0', false) FROM pg_settings
        WHERE name IN ('idle_session_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')`,
    });
  }

  /** Ends it at once, whatever is in flight on it. */
  destroy(): void {
    this.#broken ??= new Error('the connection was given up');
    // Before the socket is destroyed, which forgets its address then.
    if (this.#isInFlight) this.#cancel();
    this.#isInFlight = false;
    this.#socket.destroy();
  }

  /** Ends it in good order where the server still answers. */
  async close(): Promise<void> {
    const late = setTimeout(() => this.destroy(), CLOSE_TIMEOUT_MS);
    if (this.#broken === undefined) await this.#client.end();
    clearTimeout(late);
    this.destroy();
  }

  /**
   * Asks the server to cancel, on a connection of its own as the protocol has it. A commit that waits for a standby
   * heeds neither `statement_timeout` nor the end of its connection, and each would hold one of `max_connections`.
   */
  #cancel(): void {
    // Null where the server, or a proxy before it, gave no key to cancel with.
    const { processID, secretKey } = this.#client as unknown as Record<
      'processID' | 'secretKey',
      number | null
    >;
    if (processID === null || secretKey === null) return;
    const { host, port } = this.host;
    // To the very address of this connection: a name may lead to another machine by now.
    const socket = host.startsWith('/')
      ? connect(`${host}/.s.PGSQL.${port}`)
      : connect(port, this.#socket.remoteAddress ?? host);
    socket.on('error', () => {}).setTimeout(CONNECT_TIMEOUT_MS, () => socket.destroy());
    const request = Buffer.alloc(16);
    for (const [index, word] of [request.length, CANCEL_REQUEST, processID, secretKey].entries()) {
      request.writeInt32BE(word, index * 4);
    }
    socket.unref().end(request);
  }

  static async #openWith(
    address: PostgresAddress,
    host: HostAddress,
    ssl: ConnectionOptions | false,
    unwanted: AbortSignal | undefined,
  ): Promise<Connection> {
    unwanted?.throwIfAborted();
    const socket = new Socket();
    const client = new pg.Client({
      ...host,
      stream: () => socket,
      ssl,
      database: address.database,
      user: address.user,
      password: address.password ?? (() => passwordFromFile(address, host)),
      application_name: address.applicationName,
      options: address.options,
      connectionTimeoutMillis: address.connectTimeoutMs,
      // Only this finds out on an idle connection that a host has vanished: it answers nothing and refuses nothing.
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEP_ALIVE_DELAY_MS,
    });
    const connection = new Connection(host, client, socket);
    let firstByte = '';
    socket.once('data', (data: Buffer) => {
      firstByte = data.toString('latin1', 0, 1);
    });
    const giveUp = (): void => connection.destroy();
    unwanted?.addEventListener('abort', giveUp);
    try {
      await client.connect();
      await connection.#setUp();
      return connection;
    } catch (error) {
      connection.destroy();
      throw ssl === false ? error : tlsFailure(error, firstByte);
    } finally {
      unwanted?.removeEventListener('abort', giveUp);
    }
  }

  async #setUp(): Promise<void> {
    const [row] = await this.run({
      text: `SELECT current_setting('transaction_read_only'), current_setting('server_encoding'),
        current_setting('synchronous_commit', true), EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'citus')`,
    });
    const [readOnly, encoding, synchronousCommit, isCitus] = row!;
    if (readOnly === 'on') {
      const { host, port } = this.host;
      throw new HostIsReadOnly(
        `${host}:${port} is read-only (a standby, or default_transaction_read_only is on)`,
      );
    }
    if (encoding !== 'UTF8') {
      throw new StoreRejected(
        `the database has the encoding ${encoding}, which does not hold every name; make one with CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0`,
      );
    }
    const timeoutMs = STATEMENT_TIMEOUT_MS - STATEMENT_CANCEL_MARGIN_MS;
    await this.run({ text: `SET statement_timeout = ${timeoutMs}` });
    // A wait for a standby that was cut short is reported by a warning and by nothing else.
    await this.run({ text: 'SET client_min_messages = warning' });
    if (synchronousCommit !== null) {
      // A 200 must not rest on memory, whatever the server's default is, or becomes while this connection lasts.
      const value = synchronousCommit === 'off' ? 'on' : synchronousCommit;
      await this.run({ text: `SET synchronous_commit = ${value}` });
    }
    this.isCitus = isCitus === 't';
  }
}
