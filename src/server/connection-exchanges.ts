import type { ErrorName } from '../core/contract/errors.ts';
import type { ByteText } from '../core/request.ts';
import { errorResponse, type HttpResponse } from '../core/response.ts';
import type { TickBudget } from '../core/tick-budget.ts';
import {
  type AwaitedBody,
  type BegunRequest,
  type BodyState,
  type Discarding,
  FLUSHING,
  type Handling,
  IDLE,
  type StateMachine,
} from './connection-state.ts';
import { Exchange, type Handled } from './exchange.ts';
import type { LastRead } from './last-read.ts';
import type { PendingResponse, ResponseQueue } from './response-queue.ts';
import type { ServerContext } from './server-context.ts';

/** Bytes of a body that are decoded at a time. If each chunk has one byte, this takes 1 ms. */
const DECODED_BYTES_MAX = 8 * 1024;
/** Ticks for which the rest of a rejected request is discarded, so that it may become whole. */
const DISCARD_TICKS = 2;

/** The result of decoding. The bytes from `end` on were not decoded. */
type BodyDecoding =
  | { kind: 'more' }
  | { kind: 'complete'; end: number }
  /** The time of this tick is spent. */
  | { kind: 'later'; end: number }
  | { kind: 'invalid'; error: ErrorName };

/** Decodes bytes of a body, for as long as this tick has time. */
function decodeBody(exchange: Exchange, bytes: Buffer, budget: TickBudget): BodyDecoding {
  let end = 0;
  while (end < bytes.length && !exchange.isComplete) {
    const part = bytes.subarray(end, end + DECODED_BYTES_MAX);
    const decoded = exchange.decode(part);
    if (decoded.kind === 'invalid') return decoded;
    end += decoded.kind === 'complete' ? decoded.bytes : part.length;
    if (end < bytes.length && !exchange.isComplete && !budget.hasTime()) return { kind: 'later', end };
  }
  return exchange.isComplete ? { kind: 'complete', end } : { kind: 'more' };
}

/**
 * The exchanges of one connection: its requests with handlers, from the header section to the
 * response. The connection is in the states handling, body and discarded meanwhile, and reads no
 * other request.
 */
export class ConnectionExchanges {
  readonly #context: ServerContext;
  readonly #states: StateMachine;
  readonly #responses: ResponseQueue;
  readonly #lastRead: LastRead;
  /** The exchanges whose responses the client has not taken. */
  readonly #exchanges = new Set<Exchange>();

  constructor(context: ServerContext, states: StateMachine, responses: ResponseQueue, lastRead: LastRead) {
    this.#context = context;
    this.#states = states;
    this.#responses = responses;
    this.#lastRead = lastRead;
  }

  /**
   * Calls the handler of a request.
   *
   * @param unread the received bytes after its header section
   */
  begin({ parsed, since }: BegunRequest, unread: ByteText, arrivedAt: number): void {
    const { handle, longBodies, onInternalError } = this.#context;
    const request = { arrivedAt, bodyBytes: 0, body: undefined, tokenId: undefined, headers: parsed.headers };
    const exchange = new Exchange(request, longBodies, () => this.#receiveBody(handling));
    const pending = this.#responses.add(exchange.request, () => this.#release(exchange));
    const handling: Handling = { kind: 'handling', since, exchange, pending };
    this.#exchanges.add(exchange);
    this.#states.enter(handling, unread);
    handle(exchange).then(
      handled => this.#onHandled(handling, handled),
      cause => {
        onInternalError(cause, exchange.request);
        this.#onHandled(handling, { kind: 'ready', response: errorResponse('internal') });
      },
    );
  }

  /** Decodes the next bytes of a body. */
  decode(state: BodyState, bytes: Buffer): void {
    const { exchangeBudget } = this.#context;
    const decoded = decodeBody(state.exchange, bytes, exchangeBudget);
    if (decoded.kind === 'more') {
      this.#states.enter(state);
      return;
    }
    if (decoded.kind === 'complete') {
      const { since, exchange, pending } = state;
      const unread = bytes.toString('latin1', decoded.end);
      this.#states.enter({ kind: 'handling', since, exchange, pending }, unread);
    }
    if (state.kind === 'discarded') this.endDiscarding(state);
    else if (decoded.kind === 'invalid') this.fail(state, decoded.error);
    else if (decoded.kind === 'later')
      this.#states.defer(exchangeBudget, state, bytes.toString('latin1', decoded.end));
  }

  /** Rejects a request whose body is invalid, late or cut short. */
  fail({ exchange, pending }: AwaitedBody, error: ErrorName): void {
    exchange.end();
    pending.isLast = true;
    this.#respond(pending, errorResponse(error));
  }

  /** Responds to a rejected request. If the rest of it has not arrived, the connection ends. */
  endDiscarding({ exchange, pending, response }: Discarding): void {
    pending.isLast ||= !exchange.isComplete;
    this.#respond(pending, response);
  }

  /** Ends all exchanges, because the connection is closed. */
  end(): void {
    for (const exchange of this.#exchanges) {
      exchange.end();
      this.#release(exchange);
    }
  }

  #receiveBody(handling: Handling): void {
    const body: AwaitedBody = { ...handling, kind: 'body' };
    this.#states.resume(body);
    // RFC 9110 section 10.1.1: a body that has arrived needs no 100 (Continue).
    if (this.#states.state === body && handling.exchange.headers.expectsContinue)
      this.#responses.sendContinue(handling.pending);
  }

  #onHandled(handling: Handling, handled: Handled): void {
    const { exchange, pending } = handling;
    if (handled.kind === 'abandoned' || !exchange.isAwaited) return;
    if (handled.kind === 'queued') {
      this.#responses.respondLater(pending, handled.response);
      this.#next(pending);
    } else if (exchange.isComplete) this.#respond(pending, handled.response);
    else this.#discard({ ...handling, kind: 'discarded', response: handled.response });
  }

  /** Discards the rest of a rejected request. If it is complete soon, the connection stays open. */
  #discard(state: Discarding): void {
    this.#states.resume(state);
    const { exchangeBudget } = this.#context;
    let ticksLeft = this.#lastRead.isOver ? 1 : DISCARD_TICKS;
    const onTick = (): void => {
      if (this.#states.state !== state) return;
      if (--ticksLeft > 0) exchangeBudget.defer(onTick);
      else this.endDiscarding(state);
    };
    if (this.#states.state === state) exchangeBudget.defer(onTick);
  }

  /** Responds to the request that was read last. */
  #respond(pending: PendingResponse, response: HttpResponse): void {
    // The write of the last response may enter `lingering`, so `flushing` is entered before it.
    if (pending.isLast) this.#states.enter(FLUSHING);
    this.#responses.respond(pending, response);
    if (!pending.isLast) this.#next(pending);
  }

  /** Reads the bytes after a request. */
  #next({ isLast }: PendingResponse): void {
    if (isLast) this.#states.enter(FLUSHING);
    else this.#states.resume(IDLE);
  }

  #release(exchange: Exchange): void {
    exchange.share[Symbol.dispose]();
    this.#exchanges.delete(exchange);
  }
}
