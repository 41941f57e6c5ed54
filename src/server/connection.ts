import type { Socket } from 'node:net';
import type { ErrorName } from '../core/contract/errors.ts';
import { errorResponse, type HttpResponse } from '../core/response.ts';
import type { TickBudget } from '../core/tick-budget.ts';
import type { ConnectionParts, Handled } from './connection-parts.ts';
import { type Discarding, type Handling, IDLE, STATE_TIMEOUTS_MS, type State } from './connection-state.ts';
import { Exchange } from './exchange.ts';
import { HeadReader, type KnownHead } from './known-heads.ts';
import { Output } from './output.ts';
import { EXCHANGE } from './plain-creates.ts';
import { receivedRequest } from './received-request.ts';
import { EMPTY_LINES_BYTES_MAX, emptyLinesAt } from './request-head.ts';
import { type PendingResponse, ResponseQueue } from './response-queue.ts';
import { rejectsPlants } from './server-context.ts';
import { readIntoSharedBuffer } from './shared-read-buffer.ts';
import { UNTAKEN_MS_MAX } from './timeouts.ts';

/** Bytes of a body that are decoded at a time. If each is a chunk, this takes a millisecond. */
const DECODED_BYTES_MAX = 8 * 1024;
/**
 * Ticks for which the rest of a rejected request is discarded. Short requests are whole by then.
 */
const DISCARD_TICKS = 2;
/** In the last phase of a stop, a part of a request may become whole for this long. */
const LAST_PART_MS_MAX = 250;

/**
 * A connection with a client. It reads requests by its {@link State}. Responses leave in the order
 * of their requests ({@link ResponseQueue}), whatever the state.
 */
export class Connection {
  readonly #socket: Socket;
  readonly #parts: ConnectionParts;
  readonly #output: Output;
  readonly #responses: ResponseQueue;
  #state: State;
  readonly #heads = new HeadReader();
  /** Received bytes, from the beginning of a request or of the rest of its body. */
  #rest = '';
  /** When a response was last written or taken; ms, monotonic clock. Input does not count. */
  #usedAt: number;
  /** When bytes last arrived during a stop; ms, monotonic clock. */
  #receivedAt = Number.NEGATIVE_INFINITY;
  /** The exchanges whose responses the client has not taken. */
  readonly #exchanges = new Set<Exchange>();

  constructor(socket: Socket, parts: ConnectionParts) {
    const { clock, context } = parts;
    this.#socket = socket;
    this.#parts = parts;
    this.#usedAt = clock.now();
    this.#state = { kind: 'new', since: this.#usedAt };
    this.#output = new Output(socket, () => this.#onWrite(false), clock);
    const isInputOver = (): boolean => context.phase.kind !== 'running' && this.#state.kind === 'idle';
    this.#responses = new ResponseQueue(socket, context, this.#output, isInputOver, this.#onWrite, clock);
    if (!readIntoSharedBuffer(socket, this.#receive))
      socket.on('data', (chunk: Buffer) => this.#receive(chunk, chunk.length));
    socket.on('end', () => this.#onEnd());
    socket.on('error', this.destroy);
    socket.on('close', this.#onClose);
  }

  readonly destroy = (): void => {
    this.#socket.destroy();
  };

  /** Ends the connection if it has nothing to do. */
  endIfIdle(): void {
    const isIdle = this.#state.kind === 'idle' || this.#state.kind === 'new';
    if (isIdle && this.#responses.length === 0) this.#linger();
  }

  /** Ends requests and connections that have lasted too long. @param now ms, monotonic clock */
  enforceTimeouts(now: number): void {
    const { waitingSinceMs } = this.#output;
    if (waitingSinceMs !== undefined && now - waitingSinceMs >= UNTAKEN_MS_MAX) {
      this.destroy();
      return;
    }
    const state = this.#state;
    switch (state.kind) {
      case 'new':
      case 'head':
      case 'request':
        if (now - state.since >= STATE_TIMEOUTS_MS[state.kind]) this.#fail('tooSlow');
        else if (now - this.#closingSinceMs >= LAST_PART_MS_MAX) this.#fail('shuttingDown');
        break;
      case 'body':
        if (now - state.since >= STATE_TIMEOUTS_MS.body) this.#failWithin(state, 'tooSlow');
        break;
      case 'idle':
      case 'lingering': {
        const isAtWork = this.#responses.length > 0 || waitingSinceMs !== undefined;
        if (!isAtWork && now - this.#usedAt >= STATE_TIMEOUTS_MS[state.kind]) this.destroy();
        break;
      }
    }
  }

  /** @param buffer its first bytes are valid during this call */
  readonly #receive = (buffer: Buffer, length: number): void => {
    const state = this.#state;
    const { clock, context } = this.#parts;
    if (context.phase.kind !== 'running') this.#receivedAt = clock.now();
    switch (state.kind) {
      case 'new':
      case 'idle':
      case 'head':
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

  /** When the last phase of a stop began; ms, monotonic clock. */
  get #closingSinceMs(): number {
    const { phase } = this.#parts.context;
    return phase.kind === 'closing' ? phase.sinceMs : Number.POSITIVE_INFINITY;
  }

  /** Whether the connection has read once in the last phase of a stop. */
  get #hasReadLast(): boolean {
    return this.#receivedAt >= this.#closingSinceMs;
  }

  /** Changes the state. */
  #enter(state: State): void {
    this.#state = state;
    if (state.kind === 'full' || state.kind === 'deferred') this.#socket.pause();
    else if (state.kind !== 'handling' && this.#socket.isPaused()) this.#socket.resume();
    const isLate = state.kind === 'idle' && rejectsPlants(this.#parts.context.phase);
    if (this.#socket.readableEnded) this.#onEnd();
    else if (isLate && this.#responses.length === 0) this.#linger();
    else if (isLate && this.#hasReadLast) {
      this.#responses.endAfterAll();
      this.#hold('', 0, { kind: 'flushing' });
    }
  }

  /** Reads the requests in these bytes. In the state `request`, the bytes begin after its head. */
  #read(received: string): void {
    const state = this.#state;
    const now = this.#parts.clock.now();
    let since = state.kind === 'head' ? state.since : now;
    let start: number | undefined = 0;
    if (state.kind === 'request')
      start = this.#takeRequest(state.known, received, 0, state.since, now, state.cameInTime);
    while (start !== undefined && start < received.length) {
      start = this.#responses.isFull
        ? this.#hold(received, start, { kind: 'full' })
        : this.#readRequest(received, start, since, now);
      since = now;
    }
    if (start !== undefined) this.#hold('', 0, IDLE);
  }

  /** Stores the bytes from `start` on for later. */
  #hold(received: string, start: number, state: State): undefined {
    this.#rest = received.slice(start);
    this.#enter(state);
  }

  /** @returns where the request that begins at `start` ends; undefined: in another state */
  #readRequest(received: string, start: number, since: number, now: number): number | undefined {
    // The first byte of an empty line begins no request, and no timeout.
    if (received.length === start + 1 && received[start] === '\r') return this.#hold(received, start, IDLE);
    const emptyBytes = emptyLinesAt(received, start);
    if (emptyBytes > EMPTY_LINES_BYTES_MAX) return this.#fail('badHttp');
    if (emptyBytes > 0) return start + emptyBytes;
    const { creates, exchangeBudget } = this.#parts;
    const budget = creates.budgetOf(this.#responses.length);
    const isFirst = start === 0;
    const before = isFirst ? this.#state : IDLE;
    if (!budget.hasTime(isFirst ? now : undefined)) return this.#defer(budget, received, start, before);
    const scanned = before.kind === 'head' ? before.scanned : 0;
    const reading = this.#heads.read(received, start, scanned, exchangeBudget);
    switch (reading.kind) {
      case 'head': {
        const cameInTime = !rejectsPlants(this.#parts.context.phase);
        const bodyStart = start + reading.section.length;
        return this.#takeRequest(reading, received, bodyStart, since, now, cameInTime);
      }
      case 'more':
        // Otherwise a client that sends without a pause would delay the shutdown.
        if (this.#hasReadLast) return this.#fail('shuttingDown');
        return this.#hold(received, start, { kind: 'head', since, scanned: received.length - start });
      case 'later':
        return this.#defer(exchangeBudget, received, start, before);
      case 'invalid':
        return this.#fail(reading.error);
    }
  }

  /** @returns where the request ends whose body begins at `start`; undefined: in another state */
  #takeRequest(
    known: KnownHead,
    received: string,
    start: number,
    since: number,
    now: number,
    cameInTime: boolean,
  ): number | undefined {
    const { creates, exchangeBudget } = this.#parts;
    const body = cameInTime ? creates.bodyAt(known, received, start) : EXCHANGE;
    // In the state `request`, the head is not read again.
    if (body.kind === 'more')
      return this.#hold(received, start, { kind: 'request', since, known, cameInTime });
    const { length } = this.#responses;
    const budget = body.kind === 'exchange' ? exchangeBudget : creates.budgetOf(length);
    const wasRead = start === 0;
    // `#readRequest` asked the budget of plain creates before it read the head.
    if ((wasRead || body.kind === 'exchange') && !budget.hasTime())
      return this.#defer(budget, received, start, { kind: 'request', since, known, cameInTime });
    if (body.kind === 'exchange') return this.#begin(known, received, start, since, now);
    // `create` queues the plant before it returns. So the plants of a connection stay in the order
    // of its requests.
    const created = creates.create(known, body, now, this, length === 0);
    this.#responses.respondLater(this.#responses.add(created.request), created.response);
    return known.head.isLast ? this.#hold('', 0, { kind: 'flushing' }) : body.end;
  }

  #defer(budget: TickBudget, received: string, start: number, next: State): undefined {
    const state: State = { kind: 'deferred', next };
    budget.defer(() => {
      if (this.#state !== state) return;
      this.#state = next;
      this.#goOn();
    });
    return this.#hold(received, start, state);
  }

  /** Processes the stored bytes. */
  #goOn(): void {
    const state = this.#state;
    const rest = this.#rest;
    if (state.kind !== 'body' && state.kind !== 'discarded') this.#read(rest);
    else {
      this.#rest = '';
      if (rest !== '') this.#decode(state, Buffer.from(rest, 'latin1'));
      // Decoding has not changed the state, so the socket must read on.
      if (this.#state === state) this.#enter(state);
    }
  }

  /** Begins a request that needs its handler. */
  #begin(known: KnownHead, received: string, bodyStart: number, since: number, now: number): undefined {
    const { context, creates, handle } = this.#parts;
    creates.interrupt();
    const request = receivedRequest(context, known, now);
    const exchange = new Exchange(request, () => this.#receiveBody(handling));
    const pending = this.#responses.add(exchange.request, () => this.#release(exchange));
    const handling: Handling = { kind: 'handling', since, exchange, pending };
    this.#exchanges.add(exchange);
    this.#hold(received, bodyStart, handling);
    handle(exchange).then(
      handled => this.#onHandled(handling, handled),
      cause => {
        context.onInternalError(cause, exchange.request);
        this.#onHandled(handling, errorResponse('internal'));
      },
    );
  }

  #receiveBody(handling: Handling): void {
    const body: Handling = { ...handling, kind: 'body' };
    this.#state = body;
    this.#goOn();
    // RFC 9110 section 10.1.1: a client whose body has arrived needs no 100 (Continue).
    if (this.#state === body && handling.exchange.head.expectsContinue)
      this.#responses.sendContinue(handling.pending);
  }

  #onHandled({ exchange, pending }: Handling, handled: Handled | undefined): void {
    if (handled === undefined || !exchange.isAwaited) return;
    if ('queued' in handled) {
      this.#responses.respondLater(pending, handled.queued);
      this.#next(pending);
    } else if (exchange.isComplete) this.#respond(pending, handled);
    else this.#discard({ kind: 'discarded', exchange, pending, response: handled });
  }

  /** Discards the rest of a rejected request. If it is complete soon, the connection stays open. */
  #discard(state: Discarding): void {
    this.#state = state;
    this.#goOn();
    const { exchangeBudget } = this.#parts;
    let ticksLeft = this.#hasReadLast ? 1 : DISCARD_TICKS;
    const onTick = (): void => {
      if (this.#state !== state) return;
      if (--ticksLeft > 0) exchangeBudget.defer(onTick);
      else this.#endDiscarding(state);
    };
    if (this.#state === state) exchangeBudget.defer(onTick);
  }

  #endDiscarding({ exchange, pending, response }: Discarding): void {
    pending.isLast ||= !exchange.isComplete;
    this.#respond(pending, response);
  }

  /** Responds to the request that was read last. */
  #respond(pending: PendingResponse, response: HttpResponse<string | Uint8Array>): void {
    // The state changes first, because `respond` may write at once and enter `lingering`.
    if (pending.isLast) this.#hold('', 0, { kind: 'flushing' });
    this.#responses.respond(pending, response);
    if (!pending.isLast) this.#next(pending);
  }

  /** Reads the bytes after a request. */
  #next({ isLast }: PendingResponse): void {
    if (isLast) this.#hold('', 0, { kind: 'flushing' });
    else {
      this.#state = IDLE;
      this.#goOn();
    }
  }

  #decode(state: Handling | Discarding, bytes: Buffer): void {
    const { exchange } = state;
    const { exchangeBudget } = this.#parts;
    let at = 0;
    while (at < bytes.length && !exchange.isComplete) {
      const part = bytes.subarray(at, at + DECODED_BYTES_MAX);
      const decoded = exchange.decode(part);
      if (decoded.kind === 'invalid') {
        this.#endDecoding(state, decoded.error);
        return;
      }
      at += decoded.kind === 'complete' ? decoded.bytes : part.length;
      if (at === bytes.length || exchange.isComplete || exchangeBudget.hasTime()) continue;
      if (state.kind === 'discarded') this.#endDecoding(state);
      else this.#defer(exchangeBudget, bytes.toString('latin1', at), 0, state);
      return;
    }
    if (!exchange.isComplete) return;
    this.#rest = bytes.toString('latin1', at);
    this.#endDecoding(state);
  }

  /** @param fault undefined: the request is complete, or need not be */
  #endDecoding(state: Handling | Discarding, fault?: ErrorName): void {
    if (state.kind === 'discarded') this.#endDiscarding(state);
    else if (fault !== undefined) this.#failWithin(state, fault);
    else this.#enter({ ...state, kind: 'handling' });
  }

  /** Rejects bytes that are no request, after the responses to all requests. */
  #fail(error: ErrorName): undefined {
    this.#hold('', 0, { kind: 'flushing' });
    this.#responses.endWith(errorResponse(error));
  }

  /** Rejects a request whose body is invalid. */
  #failWithin({ exchange, pending }: Handling, error: ErrorName): void {
    exchange.end();
    pending.isLast = true;
    this.#respond(pending, errorResponse(error));
  }

  #onEnd(): void {
    const state = this.#state;
    switch (state.kind) {
      case 'new':
      case 'idle':
        if (this.#responses.length === 0) this.#linger();
        break;
      case 'head':
      case 'request':
        this.#fail('badHttp');
        break;
      case 'body':
        this.#failWithin(state, 'badHttp');
        break;
      case 'discarded':
        this.#endDiscarding(state);
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

  #release(exchange: Exchange): void {
    exchange.share[Symbol.dispose]();
    this.#exchanges.delete(exchange);
  }

  readonly #onClose = (): void => {
    this.#state = { kind: 'closed' };
    this.#rest = '';
    for (const exchange of this.#exchanges) {
      exchange.end();
      this.#release(exchange);
    }
  };
}
