import { readFileSync } from 'node:fs';
import { Socket } from 'node:net';
import type { ConnectionOptions } from 'node:tls';
import pg from 'pg';
import pgpass from 'pgpass';
import {
  POSTGRES_CONNECT_WAIT_MS,
  POSTGRES_KEEP_ALIVE_AFTER_MS,
  POSTGRES_STATEMENT_WAIT_MS,
} from '../../contract/limits.ts';
import { StoreRefused } from '../plant-store.ts';
import { CommitNotConfirmed, HostIsReadOnly, sqlStateOf } from './failure.ts';
import type { HostAddress, PostgresAddress } from './postgres-url.ts';

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

/** A connection to a host that takes writes. One statement at a time. */
export class Connection {
  readonly host: HostAddress;
  /** Nothing on it takes longer than this, on the clock that is never set. */
  deadline = Number.POSITIVE_INFINITY;
  /** synchronous_commit was off for this user, database or server; it is on here. */
  synchronousCommitWasOff = false;
  readonly #client: pg.Client;
  readonly #socket: Socket;
  #broken: Error | undefined;
  #warning: string | undefined;

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
   * @throws {HostIsReadOnly} when it answers and takes no writes
   * @throws {StoreRefused} when the database cannot hold a plant store
   */
  static async open(address: PostgresAddress, host: HostAddress): Promise<Connection> {
    const [first, second] = tlsAttempts(address, host);
    try {
      return await Connection.#openWith(address, host, first!);
    } catch (error) {
      if (second === undefined || !isAboutTls(error)) throw error;
      return await Connection.#openWith(address, host, second);
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
    // pg takes a time limit for one query, which its types do not have.
    const query: pg.QueryArrayConfig & { query_timeout: number } = {
      ...statement,
      rowMode: 'array',
      types: AS_TEXT,
      query_timeout: Math.ceil(Math.max(1, Math.min(waitMs, this.deadline - performance.now()))),
    };
    return (await this.#client.query<TextRow>(query)).rows;
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

  /** Ends it at once, whatever is under way on it. */
  destroy(): void {
    this.#broken ??= new Error('the connection was given up');
    this.#socket.destroy();
  }

  /** Takes leave of the server, and goes without an answer when there is none. */
  async close(): Promise<void> {
    const late = setTimeout(() => this.destroy(), LEAVE_WAIT_MS);
    if (this.#broken === undefined) await this.#client.end();
    clearTimeout(late);
    this.destroy();
  }

  static async #openWith(
    address: PostgresAddress,
    host: HostAddress,
    ssl: ConnectionOptions | false,
  ): Promise<Connection> {
    const socket = new Socket();
    const client = new pg.Client({
      ...host,
      stream: () => socket,
      ssl,
      database: address.database,
      user: address.user,
      password: address.password ?? (() => passwordFromFile(address, host) as Promise<string>),
      application_name: address.applicationName,
      options: address.options,
      connectionTimeoutMillis: address.connectWaitMs ?? POSTGRES_CONNECT_WAIT_MS,
      // A host that vanished answers nothing and refuses nothing; only this finds out on an idle connection.
      keepAlive: true,
      keepAliveInitialDelayMillis: POSTGRES_KEEP_ALIVE_AFTER_MS,
    });
    const connection = new Connection(host, client, socket);
    try {
      await client.connect();
      await connection.#setUp();
      return connection;
    } catch (error) {
      connection.destroy();
      throw error;
    }
  }

  async #setUp(): Promise<void> {
    const { rows } = await this.#client.query<TextRow>({
      text: `SELECT current_setting('transaction_read_only'), current_setting('server_encoding'),
        current_setting('synchronous_commit', true)`,
      rowMode: 'array',
      types: AS_TEXT,
      query_timeout: POSTGRES_STATEMENT_WAIT_MS,
    } as pg.QueryArrayConfig);
    const [readOnly, encoding, synchronousCommit] = rows[0]!;
    if (readOnly === 'on') throw new HostIsReadOnly(`${this.host.host}:${this.host.port}`);
    if (encoding !== 'UTF8') {
      throw new StoreRefused(
        `the database has the encoding ${encoding}, which does not hold every name; make one with CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0`,
      );
    }
    await this.run({ text: `SET statement_timeout = ${POSTGRES_STATEMENT_WAIT_MS - CANCEL_EARLIER_MS}` });
    if (synchronousCommit === 'off') {
      // A 200 must not rest on memory, whatever the default of the server is.
      await this.run({ text: 'SET synchronous_commit = on' });
      this.synchronousCommitWasOff = true;
    }
  }
}

/** What is tried in turn: libpq's modes `allow` and `prefer` have a second choice. */
function tlsAttempts(address: PostgresAddress, { host }: HostAddress): (ConnectionOptions | false)[] {
  const { tlsMode, rootCertificateFile, certificateFile, keyFile } = address;
  // libpq never uses TLS over a Unix socket.
  if (tlsMode === 'disable' || host.startsWith('/')) return [false];
  const root = rootCertificateFile === 'system' ? undefined : rootCertificateFile;
  const options: ConnectionOptions = {
    ca: root && pem(root, 'sslrootcert'),
    cert: certificateFile && pem(certificateFile, 'sslcert'),
    key: keyFile && pem(keyFile, 'sslkey'),
    // With a root certificate `require` verifies as `verify-ca` does, as in libpq.
    rejectUnauthorized: tlsMode.startsWith('verify-') || rootCertificateFile !== undefined,
  };
  if (tlsMode !== 'verify-full') options.checkServerIdentity = () => undefined;
  if (tlsMode === 'allow') return [false, options];
  return tlsMode === 'prefer' ? [options, false] : [options];
}

function isAboutTls(error: unknown): boolean {
  // 28000: pg_hba.conf has no entry for a connection with, or without, TLS.
  return sqlStateOf(error) === '28000' || /SSL/.test((error as Error).message);
}

function pem(file: string, parameter: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new StoreRefused(
      `the file that ${parameter} names cannot be read (${(error as Error).message}); check the address of the store`,
      { cause: error },
    );
  }
}

function passwordFromFile(
  { database, user }: PostgresAddress,
  { host, port }: HostAddress,
): Promise<string | undefined> {
  return new Promise(found => pgpass({ host, port, database, user }, found));
}
