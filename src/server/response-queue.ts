import type { Socket } from 'node:net';
import type { Clock } from '../core/clock.ts';
import type { HeaderFields } from '../core/header-fields.ts';
import type { ReceivedRequest } from '../core/request.ts';
import { errorResponse, type HttpResponse } from '../core/response.ts';
import { clientAddress } from './client-address.ts';
import { crossOriginFields } from './cross-origin.ts';
import type { Output } from './output.ts';
import type { ServerContext } from './server-context.ts';

/**
 * A request whose response is not written yet, or the error response to bytes that are no valid
 * request.
 */
export interface PendingResponse {
  readonly request: ReceivedRequest | undefined;
  response: HttpResponse | undefined;
  /**
   * Whether the response waits for the next poll: during a stop, one more request may have arrived.
   */
  awaitsPoll: boolean;
  /** Whether the connection ends after it. */
  isLast: boolean;
  /** Body bytes of its plant, once that is queued. */
  bodyBytes: number;
  /** Whether 100 (Continue) must be sent before the response. */
  awaitsContinue: boolean;
  readonly onTaken: (() => void) | undefined;
}

function pendingOf(
  request: ReceivedRequest | undefined,
  isLast: boolean,
  onTaken: (() => void) | undefined,
): PendingResponse {
  return {
    request,
    response: undefined,
    awaitsPoll: false,
    isLast,
    bodyBytes: 0,
    awaitsContinue: false,
    onTaken,
  };
}

/** A connection with this many pending responses reads no further request. */
const PENDING_MAX = 1_024;
/** A connection whose pending plants have this many body bytes reads no further request either. */
const PENDING_BYTES_MAX = 256 * 1024;

const NO_FIELDS: HeaderFields = [];
const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';

/** The connection whose responses a {@link ResponseQueue} writes. */
export interface WrittenConnection {
  readonly socket: Socket;
  readonly output: Output;
  /** Whether no byte of a further request has arrived, while the service shuts down. */
  readonly isInputOver: () => boolean;
  /** Called after each write. */
  readonly onWrite: (isLast: boolean) => void;
}

/**
 * Writes the responses of one connection in the order of its requests, one write for each commit.
 */
export class ResponseQueue {
  readonly #socket: Socket;
  readonly #output: Output;
  readonly #isInputOver: () => boolean;
  readonly #onWrite: (isLast: boolean) => void;
  readonly #context: ServerContext;
  readonly #clock: Clock;
  readonly #pending: PendingResponse[] = [];
  /** Body bytes of the queued plants. A response is about as long as its request. */
  #bodyBytes = 0;
  #isWriteScheduled = false;

  constructor(
    { socket, output, isInputOver, onWrite }: WrittenConnection,
    context: ServerContext,
    clock: Clock,
  ) {
    this.#socket = socket;
    this.#output = output;
    this.#isInputOver = isInputOver;
    this.#onWrite = onWrite;
    this.#context = context;
    this.#clock = clock;
  }

  get length(): number {
    return this.#pending.length;
  }

  /** Whether no further request is read until all responses are written and taken. */
  get isFull(): boolean {
    return (
      this.#pending.length >= PENDING_MAX || this.#bodyBytes >= PENDING_BYTES_MAX || this.#output.isWaiting
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
    if (pending.response !== undefined) return;
    pending.response = response;
    if (this.#context.phase.kind !== 'running') {
      pending.awaitsPoll = true;
      afterNextPoll(this.#clock, () => {
        pending.awaitsPoll = false;
        this.#write();
      });
      return;
    }
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
    const taken: (() => void)[] = [];
    let text = '';
    let next = this.#pending[0];
    for (; next?.response !== undefined && !next.awaitsPoll; next = this.#pending[0]) {
      // A reset by the client, or a response that was not sent whole, may have closed it.
      if (this.#socket.destroyed) return;
      this.#pending.shift();
      this.#bodyBytes -= next.bodyBytes;
      const { request, response, onTaken } = next;
      const { delivery } = response;
      const asksToBeLast = delivery?.kind === 'whole' && delivery.isLast;
      const isLast = next.isLast || (this.#pending.length === 0 && (asksToBeLast || this.#isInputOver()));
      this.#observe(response, request);
      const headers = this.#headersOf(response, request, isLast);
      if (delivery !== undefined && delivery.kind !== 'whole') {
        this.#cutOff(text, headers, response);
        return;
      }
      text += headers;
      if (request?.headers.method !== 'HEAD') text += response.body;
      if (onTaken !== undefined) taken.push(onTaken);
      if (delivery !== undefined) taken.push(() => delivery.onTaken(!this.#socket.readableEnded));
      if (isLast) {
        this.#flush(text, taken);
        this.#output.end();
        this.#onWrite(true);
        return;
      }
    }
    if (next?.awaitsContinue) {
      next.awaitsContinue = false;
      text += CONTINUE;
    }
    this.#flush(text, taken);
    this.#onWrite(false);
  }

  /**
   * Closes the connection within a response, or before it. Only an `OperationWrapper` sets such a
   * delivery.
   */
  #cutOff(earlier: string, headers: string, { body, delivery }: HttpResponse): void {
    const part = delivery?.kind === 'incomplete' ? headers + body.slice(0, body.length / 2) : '';
    this.#output.write(earlier + part, () => this.#socket.destroy());
  }

  #observe(response: HttpResponse, request: ReceivedRequest | undefined): void {
    const durationMs = request === undefined ? 0 : this.#clock.now() - request.arrivedAt;
    for (const observer of this.#context.observers)
      observer.responded(response, request, durationMs, this.#addressOf);
  }

  /** Observers get it as a callback, because few of them need the address. */
  readonly #addressOf = (request: ReceivedRequest | undefined): string | undefined => {
    const { trustedProxies } = this.#context;
    return clientAddress(this.#socket.remoteAddress, request?.headers.forwardedFor, trustedProxies);
  };

  #headersOf(response: HttpResponse, request: ReceivedRequest | undefined, isLast: boolean): string {
    const { corsOrigins, responseHeaders } = this.#context;
    const isCrossOrigin = corsOrigins !== undefined && request !== undefined;
    const fields = isCrossOrigin ? crossOriginFields(corsOrigins, request.headers.fields) : NO_FIELDS;
    return responseHeaders.textOf(response, isLast, fields);
  }

  #flush(text: string, taken: readonly (() => void)[]): void {
    if (taken.length > 0)
      this.#output.write(text, () => {
        for (const each of taken) each();
      });
    else if (text !== '') this.#output.write(text);
  }
}

/** Calls back when a socket that reads has received all bytes that the kernel has now. */
export function afterNextPoll(clock: Clock, callback: () => void): void {
  // The first callback may run in an iteration whose poll is already over.
  clock.nextIteration(() => clock.nextIteration(callback));
}
