import type { ErrorName } from '../core/contract/errors.ts';
import type { ByteText } from '../core/request.ts';
import { errorResponse } from '../core/response.ts';
import type { ConnectionExchanges } from './connection-exchanges.ts';
import {
  type BegunRequest,
  FLUSHING,
  IDLE,
  type ReadingState,
  type StateMachine,
} from './connection-state.ts';
import type { LastRead } from './last-read.ts';
import { HeadersReader } from './parsed-headers.ts';
import { EXCHANGE } from './plain-creates.ts';
import { EMPTY_LINES_BYTES_MAX, emptyLinesAt } from './request-headers.ts';
import type { ResponseQueue } from './response-queue.ts';
import { rejectsPlants, type ServerContext } from './server-context.ts';

/** Where the next request begins; `entered`: reading stops, since the connection entered a state. */
type NextRequest = number | 'entered';

/**
 * Reads the requests of one connection. It queues plain creates at once, and passes all other
 * requests on to their handlers ({@link ConnectionExchanges}).
 */
export class ConnectionRequests {
  readonly #context: ServerContext;
  readonly #states: StateMachine;
  readonly #exchanges: ConnectionExchanges;
  readonly #responses: ResponseQueue;
  readonly #lastRead: LastRead;
  readonly #headers: HeadersReader;

  constructor(
    context: ServerContext,
    states: StateMachine,
    exchanges: ConnectionExchanges,
    responses: ResponseQueue,
    lastRead: LastRead,
  ) {
    this.#context = context;
    this.#states = states;
    this.#exchanges = exchanges;
    this.#responses = responses;
    this.#lastRead = lastRead;
    this.#headers = new HeadersReader(context.headersCache);
  }

  /** Reads the requests in these bytes, the first one as in the given state. */
  read(state: ReadingState, received: ByteText): void {
    const { clock } = this.#context;
    const arrivedAt = clock.now();
    let from = state;
    let start: NextRequest = 0;
    if (state.kind === 'request') {
      start = this.#readBody(state, state, received, 0, arrivedAt);
      from = IDLE;
    }
    while (start !== 'entered' && start < received.length) {
      // Reading the requests before this one has taken time.
      const now = start === 0 ? arrivedAt : clock.now();
      start = this.#readRequest(from, received, start, arrivedAt, now);
      from = IDLE;
    }
    if (start !== 'entered') this.#states.enter(IDLE);
  }

  /** Rejects bytes that are no valid request, after the responses to all requests. */
  fail(error: ErrorName): 'entered' {
    this.#states.enter(FLUSHING);
    this.#responses.endWith(errorResponse(error));
    return 'entered';
  }

  /**
   * Reads the request that begins at `start`.
   *
   * @param from the state in which its first byte is read
   */
  #readRequest(
    from: ReadingState,
    received: ByteText,
    start: number,
    arrivedAt: number,
    now: number,
  ): NextRequest {
    if (this.#responses.isFull) return this.#states.enter({ kind: 'full' }, received.slice(start));
    // An empty line begins no request, so its first byte starts no timeout.
    if (received.length === start + 1 && received[start] === '\r') return this.#states.enter(IDLE, '\r');
    const emptyBytes = emptyLinesAt(received, start);
    if (emptyBytes > EMPTY_LINES_BYTES_MAX) return this.fail('badHttp');
    if (emptyBytes > 0) return start + emptyBytes;
    const { creates, exchangeBudget, phase } = this.#context;
    const budget = creates.budgetOf(this.#responses.length);
    if (!budget.hasTime(now)) return this.#states.defer(budget, from, received.slice(start));
    const isBegun = from.kind === 'headers';
    const since = isBegun ? from.since : arrivedAt;
    const reading = this.#headers.read(received, start, isBegun ? from.scanned : 0, exchangeBudget);
    switch (reading.kind) {
      case 'headers': {
        const bodyStart = start + reading.section.length;
        const cameInTime = !rejectsPlants(phase);
        const request: BegunRequest = { kind: 'request', since, known: reading, cameInTime };
        return this.#readBody(from, request, received, bodyStart, arrivedAt);
      }
      case 'more': {
        // Otherwise a client that sends without a pause would delay the stop.
        if (this.#lastRead.isOver) return this.fail('shuttingDown');
        const scanned = received.length - start;
        return this.#states.enter({ kind: 'headers', since, scanned }, received.slice(start));
      }
      case 'later':
        return this.#states.defer(exchangeBudget, from, received.slice(start));
      case 'invalid':
        return this.fail(reading.error);
    }
  }

  /**
   * Reads the body that begins at `start`, unless it is for a handler.
   *
   * @param from `request` if its header section was read before
   */
  #readBody(
    from: ReadingState,
    request: BegunRequest,
    received: ByteText,
    start: number,
    arrivedAt: number,
  ): NextRequest {
    const { creates, exchangeBudget } = this.#context;
    const { known, cameInTime } = request;
    const body = cameInTime ? creates.bodyAt(known, received, start) : EXCHANGE;
    if (body.kind === 'more') return this.#states.enter(request, received.slice(start));
    const { length } = this.#responses;
    const budget = body.kind === 'exchange' ? exchangeBudget : creates.budgetOf(length);
    // The budget of plain creates was asked before the header section was read.
    const isBudgetAsked = body.kind === 'body' && from.kind !== 'request';
    if (!isBudgetAsked && !budget.hasTime())
      return this.#states.defer(budget, request, received.slice(start));
    if (body.kind === 'exchange') {
      this.#exchanges.begin(request, received.slice(start), arrivedAt);
      return 'entered';
    }
    // `create` queues the plant before it returns. So the plants of a connection stay in the order
    // of its requests.
    const created = creates.create(known, body, arrivedAt, this, length === 0);
    this.#responses.respondLater(this.#responses.add(created.request), created.response);
    return known.headers.isLast ? this.#states.enter(FLUSHING) : body.end;
  }
}
