import type { Socket } from 'node:net';
import type { ErrorName } from '../core/contract/errors.ts';
import { errorResponse } from '../core/response.ts';
import type { TickBudget } from '../core/tick-budget.ts';
import { ConnectionExchanges, type ConnectionInput, decodeBody } from './connection-exchanges.ts';
import type { ConnectionParts } from './connection-parts.ts';
import { type Discarding, type Handling, IDLE, overdueOf, type State } from './connection-state.ts';
import { HeadersReader, type KnownHeaders } from './known-headers.ts';
import { LastRead } from './last-read.ts';
import { Output } from './output.ts';
import { EXCHANGE } from './plain-creates.ts';
import { EMPTY_LINES_BYTES_MAX, emptyLinesAt } from './request-headers.ts';
import { ResponseQueue } from './response-queue.ts';
import { rejectsPlants } from './server-context.ts';
import { readIntoSharedBuffer } from './shared-read-buffer.ts';
import { UNTAKEN_MS_MAX } from './timeouts.ts';

/**
 * A connection with a client. It reads requests by its {@link State}. Plain creates go on at once,
 * all others with their handlers ({@link ConnectionExchanges}). Responses leave in the order of their
 * requests ({@link ResponseQueue}), whatever the state.
 */
export class Connection implements ConnectionInput {
  readonly #socket: Socket;
  readonly #parts: ConnectionParts;
  readonly #output: Output;
  readonly #responses: ResponseQueue;
  readonly #lastRead: LastRead;
  readonly #exchanges: ConnectionExchanges;
  #state: State;
  readonly #headers: HeadersReader;
  /** Received bytes, from the beginning of a request or of the rest of its body. */
  #rest = '';
  /** When a response was last written or taken; ms, monotonic clock. Input does not count. */
  #usedAt: number;

  constructor(socket: Socket, parts: ConnectionParts) {
    const { clock, context } = parts;
    this.#socket = socket;
    this.#parts = parts;
    this.#headers = new HeadersReader(parts.headersCache);
    this.#usedAt = clock.now();
    this.#state = { kind: 'new', since: this.#usedAt };
    this.#output = new Output(socket, () => this.#onWrite(false), clock);
    const isInputOver = (): boolean => context.phase.kind !== 'running' && this.#state.kind === 'idle';
    this.#responses = new ResponseQueue(socket, context, this.#output, isInputOver, this.#onWrite, clock);
    this.#lastRead = new LastRead(context);
    this.#exchanges = new ConnectionExchanges(parts, this, this.#responses, this.#lastRead);
    if (!readIntoSharedBuffer(socket, this.#receive))
      socket.on('data', (chunk: Buffer) => this.#receive(chunk, chunk.length));
    socket.on('end', () => this.#onEnd());
    socket.on('error', this.destroy);
    socket.on('close', this.#onClose);
  }

  get state(): State {
    return this.#state;
  }

  readonly destroy = (): void => {
    this.#socket.destroy();
  };

  /** Ends the connection if it has nothing to do. */
  endIfIdle(): void {
    const isIdle = this.#state.kind === 'idle' || this.#state.kind === 'new';
    if (isIdle && this.#responses.length === 0) this.#linger();
  }

  /** Ends what has lasted too long. It is called often. @param now ms, monotonic clock */
  enforceTimeouts(now: number): void {
    const { waitingSinceMs } = this.#output;
    if (waitingSinceMs !== undefined && now - waitingSinceMs >= UNTAKEN_MS_MAX) {
      this.destroy();
      return;
    }
    const state = this.#state;
    const isAtWork = this.#responses.length > 0 || waitingSinceMs !== undefined;
    const overdue = overdueOf(state, isAtWork ? undefined : this.#usedAt, this.#lastRead, now);
    if (overdue === undefined) return;
    if (overdue === 'unused') this.destroy();
    else if (state.kind === 'body') this.#exchanges.fail(state, overdue);
    else this.#fail(overdue);
  }

  /** @param buffer its first bytes are valid during this call */
  readonly #receive = (buffer: Buffer, length: number): void => {
    const state = this.#state;
    const { clock, context } = this.#parts;
    if (context.phase.kind !== 'running') this.#lastRead.receive(clock.now());
    switch (state.kind) {
      case 'new':
      case 'idle':
      case 'headers':
      case 'request': {
        const received = buffer.toString('latin1', 0, length);
        this.#read(this.#rest === '' ? received : this.#rest + received);
        break;
      }
      case 'body':
      case 'discarded':
        this.#decode(state, buffer.subarray(0, length));
        break;
      case 'handling':
      case 'full':
      case 'deferred':
        this.#rest += buffer.toString('latin1', 0, length);
        this.#socket.pause();
        break;
      // In all other states, input is discarded.
    }
  };

  /** Changes the state. Input is paused or resumed as the state needs it. */
  #enter(state: State): void {
    this.#state = state;
    if (state.kind === 'full' || state.kind === 'deferred') this.#socket.pause();
    else if (state.kind !== 'handling' && this.#socket.isPaused()) this.#socket.resume();
    const isLate = state.kind === 'idle' && rejectsPlants(this.#parts.context.phase);
    if (this.#socket.readableEnded) this.#onEnd();
    else if (isLate && this.#responses.length === 0) this.#linger();
    else if (isLate && this.#lastRead.isOver) {
      this.#responses.endAfterAll();
      this.hold('', 0, { kind: 'flushing' });
    }
  }

  /** Reads the requests in these bytes. They follow the header section of the first one, if that was read. */
  #read(received: string): void {
    const state = this.#state;
    const now = this.#parts.clock.now();
    let since = state.kind === 'headers' ? state.since : now;
    let start: number | undefined = 0;
    if (state.kind === 'request')
      start = this.#takeRequest(state.known, received, 0, state.since, now, state.cameInTime);
    while (start !== undefined && start < received.length) {
      start = this.#responses.isFull
        ? this.hold(received, start, { kind: 'full' })
        : this.#readRequest(received, start, since, now);
      since = now;
    }
    if (start !== undefined) this.hold('', 0, IDLE);
  }

  /** Enters a state. The bytes from `start` on are kept for later. */
  hold(received: string, start: number, state: State): undefined {
    this.#rest = received.slice(start);
    this.#enter(state);
  }

  /** @returns where the request that begins at `start` ends; undefined: in another state */
  #readRequest(received: string, start: number, since: number, now: number): number | undefined {
    // The first byte of an empty line begins no request, and no new limit of time.
    if (received.length === start + 1 && received[start] === '\r') return this.hold(received, start, IDLE);
    const emptyBytes = emptyLinesAt(received, start);
    if (emptyBytes > EMPTY_LINES_BYTES_MAX) return this.#fail('badHttp');
    if (emptyBytes > 0) return start + emptyBytes;
    const { creates, exchangeBudget } = this.#parts;
    const budget = creates.budgetOf(this.#responses.length);
    const isFirst = start === 0;
    const before = isFirst ? this.#state : IDLE;
    if (!budget.hasTime(isFirst ? now : undefined)) return this.#defer(budget, received, start, before);
    const scanned = before.kind === 'headers' ? before.scanned : 0;
    const reading = this.#headers.read(received, start, scanned, exchangeBudget);
    switch (reading.kind) {
      case 'headers': {
        const cameInTime = !rejectsPlants(this.#parts.context.phase);
        const bodyStart = start + reading.section.length;
        return this.#takeRequest(reading, received, bodyStart, since, now, cameInTime);
      }
      case 'more':
        // Otherwise a client that sends without a pause would delay the end.
        if (this.#lastRead.isOver) return this.#fail('shuttingDown');
        return this.hold(received, start, { kind: 'headers', since, scanned: received.length - start });
      case 'later':
        return this.#defer(exchangeBudget, received, start, before);
      case 'invalid':
        return this.#fail(reading.error);
    }
  }

  /** @returns where the request ends whose body begins at `start`; undefined: in another state */
  #takeRequest(
    known: KnownHeaders,
    received: string,
    start: number,
    since: number,
    now: number,
    cameInTime: boolean,
  ): number | undefined {
    const { creates, exchangeBudget } = this.#parts;
    const body = cameInTime ? creates.bodyAt(known, received, start) : EXCHANGE;
    // In this state its header section is not read again.
    if (body.kind === 'more')
      return this.hold(received, start, { kind: 'request', since, known, cameInTime });
    const { length } = this.#responses;
    const budget = body.kind === 'exchange' ? exchangeBudget : creates.budgetOf(length);
    const wasRead = start === 0;
    // The budget of plain creates was asked before their header sections were read.
    if ((wasRead || body.kind === 'exchange') && !budget.hasTime())
      return this.#defer(budget, received, start, { kind: 'request', since, known, cameInTime });
    if (body.kind === 'exchange') return this.#exchanges.begin(known, received, start, since, now);
    // `create` queues the plant before it returns. So the plants of a connection stay in the order
    // of its requests.
    const created = creates.create(known, body, now, this, length === 0);
    this.#responses.respondLater(this.#responses.add(created.request), created.response);
    return known.headers.isLast ? this.hold('', 0, { kind: 'flushing' }) : body.end;
  }

  /** Pauses reading until a tick has time. */
  #defer(budget: TickBudget, received: string, start: number, next: State): undefined {
    const state: State = { kind: 'deferred', next };
    budget.defer(() => {
      if (this.#state === state) this.goOn(next);
    });
    return this.hold(received, start, state);
  }

  /** Enters a state, and processes the bytes that were kept. */
  goOn(state: State): void {
    this.#state = state;
    const rest = this.#rest;
    if (state.kind !== 'body' && state.kind !== 'discarded') this.#read(rest);
    else {
      this.#rest = '';
      if (rest !== '') this.#decode(state, Buffer.from(rest, 'latin1'));
      // If that has changed nothing.
      if (this.#state === state) this.#enter(state);
    }
  }

  /** Decodes bytes of a body. What follows it is kept. */
  #decode(state: Handling | Discarding, bytes: Buffer): void {
    const { exchangeBudget } = this.#parts;
    const decoded = decodeBody(state.exchange, bytes, exchangeBudget);
    if (decoded.kind === 'more') return;
    if (decoded.kind === 'complete') this.#rest = bytes.toString('latin1', decoded.end);
    if (state.kind === 'discarded') this.#exchanges.endDiscarding(state);
    else if (decoded.kind === 'complete') this.#enter({ ...state, kind: 'handling' });
    else if (decoded.kind === 'invalid') this.#exchanges.fail(state, decoded.error);
    else this.#defer(exchangeBudget, bytes.toString('latin1', decoded.end), 0, state);
  }

  /** Rejects bytes that are no request, after the responses to all requests. */
  #fail(error: ErrorName): undefined {
    this.hold('', 0, { kind: 'flushing' });
    this.#responses.endWith(errorResponse(error));
  }

  #onEnd(): void {
    const state = this.#state;
    switch (state.kind) {
      case 'new':
      case 'idle':
        if (this.#responses.length === 0) this.#linger();
        break;
      case 'headers':
      case 'request':
        this.#fail('badHttp');
        break;
      case 'body':
        this.#exchanges.fail(state, 'badHttp');
        break;
      case 'discarded':
        this.#exchanges.endDiscarding(state);
        break;
    }
  }

  readonly #onWrite = (isLast: boolean): void => {
    this.#usedAt = this.#parts.clock.now();
    if (isLast) this.#enter({ kind: 'lingering' });
    else this.#onProgress();
  };

  #onProgress(): void {
    if (this.#responses.length > 0) return;
    if (this.#state.kind === 'full') {
      if (!this.#output.isWaiting) this.#read(this.#rest);
    } else if (this.#state.kind === 'idle' && this.#socket.readableEnded) this.#onEnd();
  }

  /**
   * Ends our side after all responses. Received bytes are discarded until the client closes its
   * side, for a limited time. An immediate close would reset the connection while the client sends,
   * and it might lose its last responses (RFC 9112 section 9.6).
   */
  #linger(): void {
    this.#usedAt = this.#parts.clock.now();
    this.#output.end();
    this.#enter({ kind: 'lingering' });
  }

  readonly #onClose = (): void => {
    this.#state = { kind: 'closed' };
    this.#rest = '';
    this.#exchanges.end();
  };
}
