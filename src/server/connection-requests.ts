import type { ErrorName } from '../core/contract/errors.ts';
import type { IterationBudget } from '../core/iteration-budget.ts';
import type { ByteText } from '../core/request.ts';
import { errorResponse } from '../core/response.ts';
import type { ConnectionHandlers } from './connection-handlers.ts';
import {
  type BegunRequest,
  ENTERED,
  type Entered,
  FLUSHING,
  type HeadersState,
  IDLE,
  type RequestMode,
  type StateMachine,
} from './connection-state.ts';
import type { LastRead } from './last-read.ts';
import { HeadersReader } from './parsed-headers.ts';
import { NEEDS_HANDLER } from './plain-creates.ts';
import { EMPTY_LINES_MAX_BYTES, emptyLinesAt } from './request-headers.ts';
import type { ResponseQueue } from './response-queue.ts';
import { rejectsPlants, type ServerContext } from './server-context.ts';

/** What was read. */
type ReadBytes =
  /** A plain create, or empty lines. The next request begins at `end`, and is read at once. */
  | { kind: 'whole'; end: number }
  /** Anything else. The connection has entered a state, which says when reading goes on. */
  | Entered;

/**
 * Reads the requests of one connection. It queues plain creates at once, and passes all other
 * requests on to their handlers ({@link ConnectionHandlers}). The states and the terms of this
 * table are those of `connection-state.ts`:
 *
 * | state | event | next state | sent |
 * |---|---|---|---|
 * | new, idle | an empty line, or its first byte | idle | |
 * | new, idle | empty lines over `EMPTY_LINES_MAX_BYTES` at once | flushing | 400 |
 * | new, idle, headers | a part of a header section | headers | |
 * | new, idle, headers | the same in the last read | flushing | 503 |
 * | new, idle, headers | an invalid section / one over `HEADER_MAX_BYTES` | flushing | 400 / 431 |
 * | new, idle, headers | a whole plain create with a known token | idle | its response |
 * | new, idle, headers | a part of such a create, with its header section | plainBody | |
 * | new, idle, headers | the header section of any other request | handling | |
 * | new, idle, headers | that of a plant, in the phases rejecting and closing | handling | |
 * | plainBody | the rest of it | idle | its response |
 * | plainBody | bytes, after its token was revoked or forgotten | handling | |
 * | headers, plainBody | end of input | flushing | 400 |
 * | new, headers | `HEADERS_TIMEOUT_MS` after the accept / the first byte | flushing | 408 |
 * | plainBody | `REQUEST_TIMEOUT_MS` after the first byte | flushing | 408 |
 * | new, headers, plainBody | `LAST_PART_MAX_MS` after the phase closing began | flushing | 503 |
 * | new, idle, headers | bytes, while responses are too many or not taken | full | |
 * | full | all responses are written and taken | as from idle | |
 * | new, idle, headers, plainBody, body | bytes, after the time of a tick is spent | deferred | |
 * | deferred | a later tick has time | as if the bytes arrived then | |
 * | deferred | the same, and a header section was read before | as after that section | |
 */
export class ConnectionRequests {
  readonly #context: ServerContext;
  readonly #states: StateMachine;
  readonly #handlers: ConnectionHandlers;
  readonly #responses: ResponseQueue;
  readonly #lastRead: LastRead;
  readonly #headers: HeadersReader;

  constructor(
    context: ServerContext,
    states: StateMachine,
    handlers: ConnectionHandlers,
    responses: ResponseQueue,
    lastRead: LastRead,
  ) {
    this.#context = context;
    this.#states = states;
    this.#handlers = handlers;
    this.#responses = responses;
    this.#lastRead = lastRead;
    this.#headers = new HeadersReader(context.headersCache);
  }

  /** Reads the requests in these bytes. @param first how the first one is read */
  read(first: RequestMode, received: ByteText): void {
    const arrivedAt = this.#context.clock.now();
    let from = IDLE;
    let start = 0;
    if (first.kind === 'plainBody' || first.kind === 'delayed') {
      const read = this.#readBody(first, received, 0, arrivedAt, false);
      if (read.kind === 'entered') return;
      start = read.end;
    } else from = first;
    while (start < received.length) {
      const read = this.#readRequest(from, received, start, arrivedAt);
      if (read.kind === 'entered') return;
      start = read.end;
      from = IDLE;
    }
    this.#states.enter(IDLE);
  }

  /** Rejects bytes that are no valid request, after the responses to all requests. */
  fail(error: ErrorName): Entered {
    const entered = this.#states.enter(FLUSHING);
    this.#responses.endWith(errorResponse(error));
    return entered;
  }

  /**
   * Reads the request that begins at `start`, if this connection may read one now.
   *
   * @param from the state in which its first byte is read
   */
  #readRequest(from: HeadersState, received: ByteText, start: number, arrivedAt: number): ReadBytes {
    if (this.#responses.isFull) return this.#states.enter({ kind: 'full' }, received.slice(start));
    // An empty line begins no request, so its first byte starts no timeout.
    if (received.length === start + 1 && received[start] === '\r') return this.#states.enter(IDLE, '\r');
    const emptyBytes = emptyLinesAt(received, start);
    if (emptyBytes > EMPTY_LINES_MAX_BYTES) return this.fail('badHttp');
    if (emptyBytes > 0) return { kind: 'whole', end: start + emptyBytes };
    // Any request may be a plain create. Reading the requests before this one has taken time.
    const now = start === 0 ? arrivedAt : this.#context.clock.now();
    const budget = this.#plainBudget;
    if (!budget.hasTime(now)) return this.#states.defer(budget, from, received.slice(start));
    return this.#readHeaders(from, received, start, arrivedAt);
  }

  /** Reads the header section that begins at `start`, and goes on with the body. */
  #readHeaders(from: HeadersState, received: ByteText, start: number, arrivedAt: number): ReadBytes {
    const { handlerBudget, phase } = this.#context;
    const isBegun = from.kind === 'headers';
    const since = isBegun ? from.since : arrivedAt;
    const reading = this.#headers.read(received, start, isBegun ? from.scanned : 0, handlerBudget);
    switch (reading.kind) {
      case 'headers': {
        const request = { since, parsed: reading, cameInTime: !rejectsPlants(phase) };
        return this.#readBody(request, received, start + reading.section.length, arrivedAt, true);
      }
      case 'more': {
        // Otherwise a client that sends without a pause would delay the stop.
        if (this.#lastRead.isOver) return this.fail('shuttingDown');
        const scanned = received.length - start;
        return this.#states.enter({ kind: 'headers', since, scanned }, received.slice(start));
      }
      case 'later':
        return this.#states.defer(handlerBudget, from, received.slice(start));
      case 'invalid':
        return this.fail(reading.error);
    }
  }

  /**
   * Reads the body that begins at `start` and queues its plant, or passes the request on.
   *
   * @param hasTime whether this tick has time for a plain create, as far as that is known
   */
  #readBody(
    request: BegunRequest,
    received: ByteText,
    start: number,
    arrivedAt: number,
    hasTime: boolean,
  ): ReadBytes {
    const { plainCreates, handlerBudget } = this.#context;
    const { parsed, cameInTime } = request;
    const body = cameInTime ? plainCreates.bodyAt(parsed, received, start) : NEEDS_HANDLER;
    switch (body.kind) {
      case 'more':
        return this.#states.enter({ ...request, kind: 'plainBody' }, received.slice(start));
      case 'needsHandler':
        if (!handlerBudget.hasTime()) return this.#delay(handlerBudget, request, received.slice(start));
        this.#handlers.begin(request, received.slice(start), arrivedAt);
        return ENTERED;
      case 'whole': {
        const budget = this.#plainBudget;
        if (!hasTime && !budget.hasTime()) return this.#delay(budget, request, received.slice(start));
        // The plants of a connection stay in the order of its requests, because `create` queues the
        // plant before it returns.
        const created = plainCreates.create(parsed, body, arrivedAt);
        this.#responses.respondLater(this.#responses.add(created.request), created.response);
        return parsed.headers.isLast ? this.#states.enter(FLUSHING) : body;
      }
    }
  }

  /** The time that this tick has for a plain create of this connection. */
  get #plainBudget(): IterationBudget {
    return this.#context.plainCreates.budgetOf(this.#responses.length);
  }

  /** Goes on in a later tick with the body of a request. @param unread from its body on */
  #delay(budget: IterationBudget, request: BegunRequest, unread: ByteText): Entered {
    return this.#states.defer(budget, { ...request, kind: 'delayed' }, unread);
  }
}
