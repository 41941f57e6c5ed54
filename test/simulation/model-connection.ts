import { CITUS } from '../../src/engines/postgres/citus/citus-topology.ts';
import { STATEMENT_TIMEOUT_MS, type Statement, type TextRow } from '../../src/engines/postgres/connection.ts';
import { inTransaction } from '../../src/engines/postgres/connections/pg-connection.ts';
import { ConnectionLost, HostIsReadOnly, NoResponse } from '../../src/engines/postgres/postgres-errors.ts';
import type { HostAddress } from '../../src/engines/postgres/postgres-url.ts';
import { ONE_SERVER } from '../../src/engines/postgres/topology/one-server.ts';
import type { StoreConnection, Topology } from '../../src/engines/postgres/topology/topology.ts';
import type { ModelPostgres, Reply } from './model-postgres.ts';
import { type ModelServer, ServerError, Session, SessionEnded } from './model-server.ts';
import { count } from './part.ts';

/** A slow statement is executed within this time, also when its client has left. */
const SLOW_MAX_MS = 4_000;

/**
 * A connection to the model. For its caller it does what `PgConnection` does: the same timeouts and
 * the same errors. It also notices what the pool must not do with a connection.
 */
export class ModelConnection {
  readonly host: HostAddress;
  readonly topology: Topology;
  readonly #model: ModelPostgres;
  readonly #session: Session;
  #deadline = Number.POSITIVE_INFINITY;
  #broken: Error | undefined;
  #isClosed = false;
  #fail: ((error: Error) => void) | undefined;
  /** The server may not have received the statement yet. */
  #isExecuting = false;
  /** A statement timed out, so the server may still execute it. */
  #isUnanswered = false;

  private constructor(model: ModelPostgres, host: HostAddress, server: ModelServer) {
    this.#model = model;
    this.host = host;
    this.topology = model.isCitus ? CITUS : ONE_SERVER;
    this.#session = new Session(server, () => this.#break('the server closed the connection'));
    model.openConnections++;
  }

  /** As `PgConnection.open`. Its statements are not simulated. */
  static async open(
    model: ModelPostgres,
    host: HostAddress,
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<StoreConnection> {
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<ModelServer>();
    const abort = (): void => reject(new ConnectionLost('the connection was aborted'));
    signal.addEventListener('abort', abort);
    const timer = model.scheduler.setTimer(
      () => reject(new ConnectionLost('PostgreSQL accepted no connection in time')),
      timeoutMs,
    );
    const attempt = (): void => {
      const server = model.serverAt(host);
      const hangsMs = server.hangsUntilMs - model.scheduler.now();
      const failure = hangsMs > 0 ? undefined : connectFailure(model, server);
      if (hangsMs > 0) model.scheduler.later(hangsMs, hangsMs + 1, attempt);
      else if (failure === undefined) resolve(server);
      else reject(failure);
    };
    model.scheduler.later(0, 3, attempt);
    try {
      const server = await promise;
      return new ModelConnection(model, host, server) as unknown as StoreConnection;
    } finally {
      signal.removeEventListener('abort', abort);
      timer[Symbol.dispose]();
    }
  }

  get isBroken(): boolean {
    return this.#broken !== undefined;
  }

  /** The pool sets it when it hands out the connection, and when it takes it back. */
  set deadline(deadline: number) {
    this.#deadline = deadline;
    if (this.isBroken && deadline !== Number.POSITIVE_INFINITY) this.#violates('handed out while broken');
  }

  async run(statement: Statement, timeoutMs = STATEMENT_TIMEOUT_MS): Promise<TextRow[]> {
    return (await this.#reply(statement, timeoutMs)).rows;
  }

  async commit(statement: Statement): Promise<TextRow[]> {
    const { rows, hasWarning } = await this.#reply(statement, STATEMENT_TIMEOUT_MS);
    if (!hasWarning) return rows;
    count(this.#model.happened, 'a commit has a warning');
    throw new ConnectionLost('the commit is not confirmed');
  }

  /** As `Connection.transaction`. */
  transaction(work: () => Promise<void>): Promise<void> {
    return inTransaction(this, work);
  }

  destroy(): void {
    const { scheduler } = this.#model;
    // The cancel request may come too late, or get lost.
    const isInFlight = this.#isUnanswered || this.#fail !== undefined;
    if (isInFlight && scheduler.happens(70)) scheduler.later(0, 20, () => this.#session.cancel());
    // The server notices the end of the connection only between two statements.
    if (!this.#isExecuting) this.#session.end();
    this.#break('the connection was aborted');
    this.#close();
  }

  async close(): Promise<void> {
    await this.#model.scheduler.pause(0, 2);
    this.destroy();
  }

  async #reply(statement: Statement, timeoutMs: number): Promise<Reply> {
    if (this.#broken !== undefined) throw this.#broken;
    if (this.#fail !== undefined || this.#isUnanswered) this.#violates('used during a statement');
    const { scheduler } = this.#model;
    const limitMs = Math.ceil(Math.max(1, Math.min(timeoutMs, this.#deadline - scheduler.now())));
    const { promise, resolve, reject } = Promise.withResolvers<Reply>();
    const timer = scheduler.setTimer(() => {
      this.#isUnanswered = true;
      count(this.#model.happened, 'a statement times out');
      reject(new NoResponse(limitMs, limitMs < timeoutMs));
    }, limitMs);
    this.#fail = reject;
    void scheduler.start(() => this.#send(statement, resolve));
    try {
      return await promise;
    } finally {
      timer[Symbol.dispose]();
      this.#fail = undefined;
    }
  }

  async #send(statement: Statement, respond: (reply: Reply) => void): Promise<void> {
    const { scheduler, faults, happened } = this.#model;
    this.#isExecuting = true;
    // At least 1 ms: a batch knows its row by the ms in which it began.
    await scheduler.pause(1, scheduler.happens(faults.slow) ? SLOW_MAX_MS : 2);
    if (scheduler.happens(faults.requestLost)) {
      count(happened, 'a request is lost');
      this.#session.end();
      return;
    }
    try {
      await this.#session.server.awake(this.#session);
      if (this.isBroken) count(happened, 'a statement is executed after its client has left');
      const reply = await this.#model.execute(this.#session, statement);
      await scheduler.pause(0, 1);
      if (scheduler.happens(faults.silence)) count(happened, 'a response never comes');
      else if (scheduler.happens(faults.responseLost)) {
        count(happened, 'a response is lost');
        this.#session.end();
      } else respond(reply);
    } catch (error) {
      if (error instanceof SessionEnded) return;
      if (!(error instanceof ServerError)) throw error;
      this.#fail?.(error);
    }
    this.#isExecuting = false;
    if (this.#isClosed) this.#session.end();
  }

  #violates(what: string): void {
    this.#model.violation ??= new Error(`a connection is ${what}`);
  }

  #break(message: string): void {
    this.#broken ??= new ConnectionLost(message);
    this.#fail?.(this.#broken);
    this.#close();
  }

  #close(): void {
    if (!this.#isClosed) this.#model.openConnections--;
    this.#isClosed = true;
  }
}

function connectFailure({ happened, scheduler }: ModelPostgres, server: ModelServer): Error | undefined {
  if (!server.isUp) {
    count(happened, 'a host refuses a connection');
    return new ConnectionLost('refused', { cause: Object.assign(new Error(), { code: 'ECONNREFUSED' }) });
  }
  if (server.isFull) {
    const sqlState = scheduler.pick('53300', '53300', '53300', '57P03', '28P01');
    count(happened, `a connection gets SQLSTATE ${sqlState}`);
    return new ServerError(sqlState);
  }
  if (server.isPrimary && !server.isReadOnly) return undefined;
  count(happened, 'a host is read-only');
  return new HostIsReadOnly('the simulated host is read-only');
}
