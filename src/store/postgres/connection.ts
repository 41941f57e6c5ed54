import { connect, Socket } from 'node:net';
import pg from 'pg';
import {
  POSTGRES_CONNECT_WAIT_MS,
  POSTGRES_KEEP_ALIVE_AFTER_MS,
  POSTGRES_STATEMENT_WAIT_MS,
} from '../../contract/limits.ts';
import { StoreRefused } from '../plant-store.ts';
import { CommitNotConfirmed, HostIsReadOnly, NoAnswer, sqlStateOf, TlsFailed } from './failure.ts';
import { passwordFromFile } from './password-file.ts';
import type { HostAddress, PostgresAddress } from './postgres-url.ts';
import { isAboutTls, type TlsAttempt, tlsAttempts, tlsFailure } from './tls-attempts.ts';

/** A statement, its parameters, and how it is run. */
export interface Statement {
  text: string;
  values?: unknown[];
  /** A statement with a name is prepared once on each connection. */
  name?: string;
}

/** A row as the server sent it: text, or null. */
export type TextRow = (string | null)[];

/** Every type stays the text that the server sent: no id goes through a double, and there is nothing to parse. */
const AS_TEXT = { getTypeParser: () => (text: string) => text } as unknown as pg.CustomTypesConfig;
/** The SQLSTATE of a notice that is no warning. */
const SUCCESSFUL_COMPLETION = '00000';
/** The server cancels a statement a little before the client gives it up, so that none is left running unseen. */
const CANCEL_EARLIER_MS = 250;
const LEAVE_WAIT_MS = 1_000;
/** What pg says when the time limit of a query is over; it has no other mark. */
const READ_TIMEOUT = 'Query read timeout';
/** https://www.postgresql.org/docs/current/protocol-message-formats.html, CancelRequest */
const CANCEL_REQUEST = 80_877_102;

/** A connection to a host that takes writes. One statement at a time. */
export class Connection {
  readonly host: HostAddress;
  /** Citus spreads the tables of this server over others. */
  isCitus = false;
  /** Nothing on it takes longer than this, on the clock that is never set. */
  deadline = Number.POSITIVE_INFINITY;
  readonly #client: pg.Client;
  readonly #socket: Socket;
  #broken: Error | undefined;
  #warning: string | undefined;
  /** A statement was sent, and the server has not said what became of it. */
  #isUnderWay = false;

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
   * @param unwanted ends it at once: a host that is silent would keep the process from its end for as long as it may take
   * @throws {HostIsReadOnly} when it answers and takes no writes
   * @throws {StoreRefused} when the database cannot hold a plant store
   */
  static async open(
    address: PostgresAddress,
    host: HostAddress,
    unwanted?: AbortSignal,
  ): Promise<Connection> {
    const [first, second] = tlsAttempts(address, host);
    try {
      return await Connection.#openWith(address, host, first, unwanted);
    } catch (error) {
      if (second === undefined || !isAboutTls(error)) throw error;
      return await Connection.#openWith(address, host, second, unwanted).catch(secondError => {
        // That there is no TLS to fall back to explains less than why it was needed.
        throw secondError instanceof TlsFailed ? error : secondError;
      });
    }
  }

  /** Whether it can't be used any more. */
  get isBroken(): boolean {
    return this.#broken !== undefined;
  }

  /**
   * Runs one statement.
   *
   * @param waitMs gives the statement up after this; what became of it is then unknown
   */
  async run(statement: Statement, waitMs = POSTGRES_STATEMENT_WAIT_MS): Promise<TextRow[]> {
    if (this.#broken !== undefined) throw this.#broken;
    const limitMs = Math.ceil(Math.max(1, Math.min(waitMs, this.deadline - performance.now())));
    // pg takes a time limit for one query, which its types do not have.
    const query: pg.QueryArrayConfig & { query_timeout: number } = {
      ...statement,
      rowMode: 'array',
      types: AS_TEXT,
      query_timeout: limitMs,
    };
    this.#isUnderWay = true;
    try {
      const { rows } = await this.#client.query<TextRow>(query);
      this.#isUnderWay = false;
      return rows;
    } catch (error) {
      this.#isUnderWay = sqlStateOf(error) === undefined;
      throw (error as Error).message === READ_TIMEOUT
        ? new NoAnswer(limitMs, limitMs < waitMs, { cause: error })
        : error;
    }
  }

  /**
   * Runs one statement that commits by itself.
   *
   * When the wait for a synchronous standby is cut short, PostgreSQL answers with success and a warning: the commit is
   * on the disk of this host alone (https://www.postgresql.org/docs/current/warm-standby.html, section 26.2.8.3).
   *
   * @throws {CommitNotConfirmed} when the server warned
   */
  async commit(statement: Statement, waitMs?: number): Promise<TextRow[]> {
    this.#warning = undefined;
    const rows = await this.run(statement, waitMs);
    if (this.#warning !== undefined) throw new CommitNotConfirmed(this.#warning);
    return rows;
  }

  /** Lets statements take so long, and the connection rest as long as it likes: for the command line. */
  async allow(statementWaitMs: number): Promise<void> {
    await this.run({ text: `SET statement_timeout = ${statementWaitMs}` });
    // By what the server knows: one is new in version 14, another in 17.
    await this.run({
      text: `SELECT set_config(name, '0', false) FROM pg_settings
        WHERE name IN ('idle_session_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')`,
    });
  }

  /** Ends it at once, whatever is under way on it. */
  destroy(): void {
    this.#broken ??= new Error('the connection was given up');
    // Before the socket goes, which forgets its address then.
    if (this.#isUnderWay) this.#cancel();
    this.#isUnderWay = false;
    this.#socket.destroy();
  }

  /** Takes leave of the server, and goes without an answer when there is none. */
  async close(): Promise<void> {
    const late = setTimeout(() => this.destroy(), LEAVE_WAIT_MS);
    if (this.#broken === undefined) await this.#client.end();
    clearTimeout(late);
    this.destroy();
  }

  /**
   * Asks the server to leave off, on a connection of its own as the protocol has it. A commit that waits for a standby
   * heeds neither `statement_timeout` nor the end of its connection, and each would keep one of `max_connections`.
   */
  #cancel(): void {
    // Null where the server, or what stands before it, gave no key to cancel with.
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
    socket.on('error', () => {}).setTimeout(POSTGRES_CONNECT_WAIT_MS, () => socket.destroy());
    const request = Buffer.alloc(16);
    for (const [index, word] of [request.length, CANCEL_REQUEST, processID, secretKey].entries()) {
      request.writeInt32BE(word, index * 4);
    }
    socket.unref().end(request);
  }

  static async #openWith(
    address: PostgresAddress,
    host: HostAddress,
    ssl: TlsAttempt,
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
      connectionTimeoutMillis: address.connectWaitMs ?? POSTGRES_CONNECT_WAIT_MS,
      // A host that vanished answers nothing and refuses nothing; only this finds out on an idle connection.
      keepAlive: true,
      keepAliveInitialDelayMillis: POSTGRES_KEEP_ALIVE_AFTER_MS,
    });
    const connection = new Connection(host, client, socket);
    let firstByte = '';
    socket.once('data', (answer: Buffer) => {
      firstByte = answer.toString('latin1', 0, 1);
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
    if (readOnly === 'on') throw new HostIsReadOnly(`${this.host.host}:${this.host.port}`);
    if (encoding !== 'UTF8') {
      throw new StoreRefused(
        `the database has the encoding ${encoding}, which does not hold every name; make one with CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0`,
      );
    }
    await this.run({ text: `SET statement_timeout = ${POSTGRES_STATEMENT_WAIT_MS - CANCEL_EARLIER_MS}` });
    // One that is cut short in its wait for a standby is told by a warning and by nothing else.
    await this.run({ text: 'SET client_min_messages = warning' });
    if (synchronousCommit !== null) {
      // A 200 must not rest on memory, whatever the default of the server is, or becomes while this connection lasts.
      const kept = synchronousCommit === 'off' ? 'on' : synchronousCommit;
      await this.run({ text: `SET synchronous_commit = ${kept}` });
    }
    this.isCitus = isCitus === 't';
  }
}
