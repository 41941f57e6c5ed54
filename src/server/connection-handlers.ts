import type { ErrorName } from '../core/contract/errors.ts';
import type { IterationBudget } from '../core/iteration-budget.ts';
import type { ByteText } from '../core/request.ts';
import { errorResponse, type HttpResponse } from '../core/response.ts';
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
import { HandledRequest, type HandlerResult } from './handled-request.ts';
import type { LastRead } from './last-read.ts';
import type { PendingResponse, ResponseQueue } from './response-queue.ts';
import type { ServerContext } from './server-context.ts';

/** Bytes of a body that are decoded at a time. If each chunk has one byte, this takes 1 ms. */
const DECODED_MAX_BYTES = 8 * 1024;
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
function decodeBody(handled: HandledRequest, bytes: Buffer, budget: IterationBudget): BodyDecoding {
  let end = 0;
  while (end < bytes.length && !handled.isComplete) {
    const part = bytes.subarray(end, end + DECODED_MAX_BYTES);
    const decoded = handled.decode(part);
    if (decoded.kind === 'invalid') return decoded;
    end += decoded.kind === 'complete' ? decoded.bytes : part.length;
    if (end < bytes.length && !handled.isComplete && !budget.hasTime()) return { kind: 'later', end };
  }
  return handled.isComplete ? { kind: 'complete', end } : { kind: 'more' };
}

/**
 * Calls the handlers of the requests of one connection, one after the other, and passes on their
 * bodies and responses. The connection is in the states handling, body and discarded meanwhile, and
 * reads no other request. The terms of this table are those of `connection-state.ts`:
 *
 * | state | event | next state | sent |
 * |---|---|---|---|
 * | handling | the handler asks for a body that is not whole | body | 100, if it is expected |
 * | body | the rest of it | handling | |
 * | body | invalid / over `HEADER_MAX_BYTES` of chunk framing | flushing | 400 / 431 |
 * | body | end of input / `REQUEST_TIMEOUT_MS` after the first byte | flushing | 400 / 408 |
 * | handling | the plant is queued | idle | its response |
 * | handling | a response, and the request is whole | idle | the response |
 * | handling, body, deferred | a response, and the request is not whole | discarded | |
 * | discarded | the rest of the request | idle | the response |
 * | discarded | `DISCARD_TICKS`, or one tick after the last read | flushing | the response |
 * | discarded | the time of a tick is spent / invalid / end of input | flushing | the response |
 */
export class ConnectionHandlers {
  readonly #context: ServerContext;
  readonly #states: StateMachine;
  readonly #responses: ResponseQueue;
  readonly #lastRead: LastRead;
  /** The requests whose responses the client has not taken. */
  readonly #handledRequests = new Set<HandledRequest>();

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
    const handled = new HandledRequest(request, longBodies, () => this.#receiveBody(handling));
    const pending = this.#responses.add(handled.request, () => this.#release(handled));
    const handling: Handling = { kind: 'handling', since, handled, pending };
    this.#handledRequests.add(handled);
    this.#states.enter(handling, unread);
    handle(handled).then(
      result => this.#onHandled(handling, result),
      cause => {
        onInternalError(cause, handled.request);
        this.#onHandled(handling, { kind: 'ready', response: errorResponse('internal') });
      },
    );
  }

  /** Decodes the next bytes of a body. */
  decode(state: BodyState, bytes: Buffer): void {
    const { handlerBudget } = this.#context;
    const decoded = decodeBody(state.handled, bytes, handlerBudget);
    if (decoded.kind === 'more') {
      this.#states.enter(state);
      return;
    }
    if (decoded.kind === 'complete') {
      const { since, handled, pending } = state;
      const unread = bytes.toString('latin1', decoded.end);
      this.#states.enter({ kind: 'handling', since, handled, pending }, unread);
    }
    if (state.kind === 'discarded') this.endDiscarding(state);
    else if (decoded.kind === 'invalid') this.fail(state, decoded.error);
    else if (decoded.kind === 'later')
      this.#states.defer(handlerBudget, state, bytes.toString('latin1', decoded.end));
  }

  /** Rejects a request whose body is invalid, late or cut short. */
  fail({ handled, pending }: AwaitedBody, error: ErrorName): void {
    handled.end();
    pending.isLast = true;
    this.#respond(pending, errorResponse(error));
  }

  /** Responds to a rejected request. If the rest of it has not arrived, the connection ends. */
  endDiscarding({ handled, pending, response }: Discarding): void {
    pending.isLast ||= !handled.isComplete;
    this.#respond(pending, response);
  }

  /** Ends all these requests, because the connection is closed. */
  end(): void {
    for (const handled of this.#handledRequests) {
      handled.end();
      this.#release(handled);
    }
  }

  #receiveBody(handling: Handling): void {
    const body: AwaitedBody = { ...handling, kind: 'body' };
    this.#states.resume(body);
    // RFC 9110 section 10.1.1: a body that has arrived needs no 100 (Continue).
    if (this.#states.state === body && handling.handled.headers.expectsContinue)
      this.#responses.sendContinue(handling.pending);
  }

  #onHandled(handling: Handling, result: HandlerResult): void {
    const { handled, pending } = handling;
    if (result.kind === 'abandoned' || !handled.isAwaited) return;
    if (result.kind === 'queued') {
      this.#responses.respondLater(pending, result.response);
      this.#next(pending);
    } else if (handled.isComplete) this.#respond(pending, result.response);
    else this.#discard({ ...handling, kind: 'discarded', response: result.response });
  }

  /** Discards the rest of a rejected request. If it is complete soon, the connection stays open. */
  #discard(state: Discarding): void {
    this.#states.resume(state);
    const { handlerBudget } = this.#context;
    let ticksLeft = this.#lastRead.isOver ? 1 : DISCARD_TICKS;
    const onTick = (): void => {
      if (this.#states.state !== state) return;
      if (--ticksLeft > 0) handlerBudget.defer(onTick);
      else this.endDiscarding(state);
    };
    if (this.#states.state === state) handlerBudget.defer(onTick);
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

  #release(handled: HandledRequest): void {
    handled.share[Symbol.dispose]();
    this.#handledRequests.delete(handled);
  }
}
