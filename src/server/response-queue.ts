import type { Clock } from '../core/clock.ts';
import type { ReceivedRequest } from '../core/request.ts';
import { errorResponse, type HttpResponse } from '../core/response.ts';
import type { ResponseWriter } from './response-writer.ts';
import type { ServerContext } from './server-context.ts';

/**
 * A request whose response is not written yet, or the error response to bytes that are no valid
 * request.
 */
export interface PendingResponse {
  readonly request: ReceivedRequest | undefined;
  /** Undefined until it may be written. */
  response: HttpResponse | undefined;
  /** Whether 100 (Continue) must be sent before the response. */
  awaitsContinue: boolean;
  /** Whether the connection ends after it. */
  isLast: boolean;
  /** Body bytes of its plant, once that is queued. */
  bodyBytes: number;
  /** Called when the client has taken the response; not if the connection ends before. */
  readonly onTaken: (() => void) | undefined;
}

function pendingOf(
  request: ReceivedRequest | undefined,
  isLast: boolean,
  onTaken: (() => void) | undefined,
): PendingResponse {
  return { request, response: undefined, awaitsContinue: false, isLast, bodyBytes: 0, onTaken };
}

/** A connection with this many pending responses reads no further request. */
const PENDING_MAX = 1_024;
/** A connection whose pending plants have this many body bytes reads no further request either. */
const PENDING_MAX_BYTES = 256 * 1024;

/**
 * The responses of one connection in the order of its requests, whatever the order in which they
 * are decided. There is one write for each commit.
 */
export class ResponseQueue {
  readonly #writer: ResponseWriter;
  readonly #context: ServerContext;
  readonly #pending: PendingResponse[] = [];
  /** Body bytes of the queued plants. A response is about as long as its request. */
  #bodyBytes = 0;
  #isWriteScheduled = false;

  constructor(writer: ResponseWriter, context: ServerContext) {
    this.#writer = writer;
    this.#context = context;
  }

  get length(): number {
    return this.#pending.length;
  }

  /** Whether no further request is read until all responses are written and taken. */
  get isFull(): boolean {
    return (
      this.#pending.length >= PENDING_MAX || this.#bodyBytes >= PENDING_MAX_BYTES || this.#writer.isWaiting
    );
  }

  /**
   * Adds a request. The queue writes its response when all earlier responses are ready, too.
   *
   * @param onTaken called when the client has taken the response; not if the connection ends before
   */
  add(request: ReceivedRequest, onTaken?: () => void): PendingResponse {
    const pending = pendingOf(request, request.headers.isLast, onTaken);
    this.#pending.push(pending);
    return pending;
  }

  /** Responds to bytes that are no valid request, after the responses to all requests. */
  endWith(error: HttpResponse): void {
    const pending = pendingOf(undefined, true, undefined);
    this.#pending.push(pending);
    this.respond(pending, error);
  }

  /** Ends the connection after the response to the latest request. */
  endAfterAll(): void {
    this.#pending.at(-1)!.isLast = true;
  }

  /** Sets a response, unless the request has one. */
  respond(pending: PendingResponse, response: HttpResponse): void {
    const { clock, phase } = this.#context;
    if (phase.kind !== 'running') {
      // The last response ends the connection, unless one more request has arrived.
      afterNextPoll(clock, () => {
        pending.response ??= response;
        this.#write();
      });
      return;
    }
    if (pending.response !== undefined) return;
    pending.response = response;
    if (this.#isWriteScheduled) return;
    if (this.#pending.length === 1) this.#write();
    // `nextTick` runs after all promises that one commit settles: one write for all of them.
    else {
      this.#isWriteScheduled = true;
      process.nextTick(() => this.#write());
    }
  }

  /** Sets the response to a request whose plant is queued, once its commit is decided. */
  respondLater(pending: PendingResponse, response: Promise<HttpResponse>): void {
    const { bodyBytes } = pending.request!;
    pending.bodyBytes = bodyBytes;
    this.#bodyBytes += bodyBytes;
    response.then(
      ready => this.respond(pending, ready),
      cause => {
        this.#context.onInternalError(cause, pending.request!);
        this.respond(pending, errorResponse('internal'));
      },
    );
  }

  /** Sends 100 (Continue) when all earlier responses are written. */
  sendContinue(pending: PendingResponse): void {
    pending.awaitsContinue = true;
    if (this.#pending[0] === pending) this.#write();
  }

  /** Writes the responses that are ready, up to the first one that is not. */
  #write(): void {
    this.#isWriteScheduled = false;
    let next = this.#pending[0];
    for (; next?.response !== undefined; next = this.#pending[0]) {
      if (this.#writer.isClosed) return;
      this.#pending.shift();
      this.#bodyBytes -= next.bodyBytes;
      const isLatest = this.#pending.length === 0;
      if (!this.#writer.add(next.response, next.request, next.isLast, isLatest, next.onTaken)) return;
    }
    if (next?.awaitsContinue) {
      next.awaitsContinue = false;
      this.#writer.addContinue();
    }
    this.#writer.write();
  }
}

/** Calls back when a socket that reads has received all bytes that the kernel has now. */
export function afterNextPoll(clock: Clock, callback: () => void): void {
  // The first callback may run in an iteration whose poll is already over.
  clock.nextIteration(() => clock.nextIteration(callback));
}
