import type { Socket } from 'node:net';
import {
  FAST_PATH_HEADERS_BYTES_MAX,
  type FastPathHeaders,
  fastPathHeadersOf,
  HEADERS_END,
} from './fast-path-headers.ts';
import { HEADERS_TIMEOUT_MS, KEEP_ALIVE_MS, SHORT_BODY_BYTES_MAX, STALLED_CHECK_MS } from './limits.ts';
import { closeWithError, lingeringClose } from './lingering-close.ts';
import { readInto, readIntoStream } from './node-internals.ts';
import { errorResponse, type HttpResponse } from './response.ts';
import { ResponseQueue } from './response-queue.ts';
import type { ServerContext } from './server-context.ts';
import type { TickBudget } from './tick-budget.ts';

/** How long a connection of the fast path waits, by its state. */
export const FAST_PATH_TIMEOUT_MS = {
  firstRequest: HEADERS_TIMEOUT_MS,
  requestRest: 1_000,
  clientRead: STALLED_CHECK_MS,
  /** Longer than announced, for a request in flight; as in Node. */
  nextRequest: KEEP_ALIVE_MS + 1_000,
};
/** How often {@link FastPathConnection.checkUse} must be called. */
export const USE_CHECK_INTERVAL_MS = 1_000;

/** With this many pending responses, the fast path reads no further request of a connection. */
const FAST_PATH_PIPELINE_MAX = 1_024;
/** The same for the bytes of their bodies: a client might not read the responses. */
const FAST_PATH_PIPELINE_BYTES_MAX = 256 * 1024;

/** After this many requests, one at a time, a connection is taken for the only sender. */
const ONLY_SENDER_REQUESTS = 16;

/** All sockets of the fast path read into it. Its bytes are taken before the next read. */
const READ_BUFFER = Buffer.allocUnsafeSlow(64 * 1024);

/** What all connections of the fast path share. */
export interface FastPath {
  readonly context: ServerContext;
  /** For connections without a pending response, which do not wait for those with many requests. */
  readonly firstRequestBudget: TickBudget;
  readonly pipelinedBudget: TickBudget;
  readonly connections: Set<FastPathConnection>;
  /** The connection of the last request; undefined if it came through Node's HTTP server. */
  lastSender: FastPathConnection | undefined;
  requestsInARow: number;
  /** Moves a connection to Node's HTTP server, with the received part of its next request. */
  moveToNode(socket: Socket, received: string): void;
}

/** Why reading is paused. `node`: the connection moves to Node after the pending responses. */
type PauseReason = 'queueFull' | 'tickBudget' | 'unverified' | 'node';

/**
 * A connection on the fast path. Its requests are parsed here and not by Node's HTTP server, which
 * costs more than the rest of a create. Received bytes are a text with one character for each byte.
 *
 * A request stays on the fast path if {@link fastPathHeadersOf} accepts its headers and its token
 * is cached and valid. Its body must be short, and the request must arrive in one or two chunks.
 * One chunk may contain several requests. Any other request moves to Node's HTTP server, and the
 * connection stays there. So the fast path never rejects a whole request for its form or its token.
 *
 * A state names what the connection waits for:
 *
 * | state | event | next state | what is sent |
 * |---|---|---|---|
 * | `firstRequest` | timeout | lingering close | 408 |
 * | `firstRequest`, `nextRequest` | whole requests | `nextRequest` | responses, in order |
 * | the same two | part of a request, no response pending | `requestRest` | |
 * | `requestRest` | rest of the request | `nextRequest` | response |
 * | `requestRest` | only another part, or timeout | moved to Node | |
 * | any | too many responses pending, or tick budget spent | same, reading paused | |
 * | any | access token not verified | same, reading paused until it is verified; if rejected, moved to Node | |
 * | any | another kind of request | moved to Node after the pending responses | |
 * | any | client ends its side | closed after the pending responses | 400 if a request is cut off |
 * | any | client does not read a response | `clientRead`, also after whole requests | |
 * | `clientRead` | timeout | cut if a response is still unread, else `nextRequest` | |
 * | `nextRequest` | timeout | cut, unless a response is pending | |
 * | any | shutdown, bytes unprocessed | moved to Node | |
 * | any | shutdown, last response written, or idle after the grace period | lingering close | |
 */
export class FastPathConnection {
  readonly #socket: Socket;
  readonly #path: FastPath;
  readonly #responses: ResponseQueue;
  #state: keyof typeof FAST_PATH_TIMEOUT_MS = 'firstRequest';
  /** Most clients repeat their headers. A comparison takes less time than a lookup in the cache. */
  #latest: FastPathHeaders | undefined;
  /** Received bytes: the first chunk of a request, or, while reading is paused, all that wait. */
  #unprocessed = '';
  /** Calls of {@link checkUse} since the last read or write. */
  #unusedChecks = 0;
  /** When the last chunk arrived, or was taken up again; ms, on the monotonic clock. */
  #arrivedAt = 0;
  #pauseReason: PauseReason | undefined;

  constructor(socket: Socket, path: FastPath) {
    this.#socket = socket;
    this.#path = path;
    const isLast = (): boolean => path.context.isDraining && this.#unprocessed === '';
    this.#responses = new ResponseQueue(socket, path.context, isLast, this.#onWrite);
    path.connections.add(this);
    this.#enter('firstRequest');
    for (const [event, handle] of this.#handlers) socket.on(event, handle);
    readInto(socket, READ_BUFFER, this.#receive);
  }

  closeIfIdle(): void {
    if (this.#responses.length === 0 && this.#unprocessed === '') lingeringClose(this.#socket);
  }

  /** Ends the state `nextRequest` at its timeout. A timer of the socket restarts at each read and write. */
  checkUse(): void {
    const unusedMs = this.#unusedChecks++ * USE_CHECK_INTERVAL_MS;
    if (this.#state === 'nextRequest' && unusedMs >= FAST_PATH_TIMEOUT_MS.nextRequest) this.#onTimeout();
  }

  readonly destroy = (): void => {
    this.#socket.destroy();
  };

  /** Once no response is pending: goes on with unprocessed bytes, or ends the connection. */
  readonly proceed = (): void => {
    // A destroyed socket may have emitted its last event. Node's HTTP server would never forget it.
    if (this.#responses.length > 0 || this.#socket.destroyed) return;
    const hasClientEnded = this.#socket.readableEnded;
    if (this.#unprocessed === '') {
      if (hasClientEnded) this.#socket.end();
      return;
    }
    if (this.#socket.writableNeedDrain) return;
    if (hasClientEnded) this.#reject(errorResponse('badHttp'));
    else if (this.#pauseReason === 'node' || this.#path.context.isDraining) this.#moveToNode();
    else if (this.#pauseReason === undefined) this.#enter('requestRest');
    // `tickBudget` and `unverified` resume by their own callbacks.
    else if (this.#pauseReason === 'queueFull') this.#resume();
  };

  readonly #receive = (length: number): void => {
    // After the last response, received bytes are discarded.
    if (this.#socket.writableEnded) return;
    if (this.#state === 'firstRequest' || this.#state === 'requestRest')
      this.#enter(this.#socket.writableLength > 0 ? 'clientRead' : 'nextRequest');
    this.#unusedChecks = 0;
    this.#processAll(READ_BUFFER.toString('latin1', 0, length));
  };

  #enter(state: keyof typeof FAST_PATH_TIMEOUT_MS): void {
    this.#state = state;
    this.#unusedChecks = 0;
    this.#socket.setTimeout(state === 'nextRequest' ? 0 : FAST_PATH_TIMEOUT_MS[state]);
  }

  /** @param received empty after a pause; else it continues the first chunk of a request, if there is one */
  #processAll(received: string): void {
    const isContinued = received !== '' && this.#unprocessed !== '';
    const all = this.#unprocessed + received;
    this.#unprocessed = '';
    this.#arrivedAt = performance.now();
    let start = 0;
    while (start < all.length) {
      const { length, bodyBytes } = this.#responses;
      const isOverLimit = length >= FAST_PATH_PIPELINE_MAX || bodyBytes >= FAST_PATH_PIPELINE_BYTES_MAX;
      const isFull = isOverLimit || this.#socket.writableNeedDrain;
      const end = isFull ? 'queueFull' : this.#process(all, start);
      if (typeof end !== 'number') {
        this.#stop(all.slice(start), end, isContinued && start === 0);
        return;
      }
      start = end;
    }
  }

  #budget(): TickBudget {
    return this.#responses.length === 0 ? this.#path.firstRequestBudget : this.#path.pipelinedBudget;
  }

  /** @returns where the request that begins at `start` ends, or why it was not processed */
  #process(bytes: string, start: number): number | PauseReason | 'incomplete' {
    const { createPlant, traceContextOf, isDraining } = this.#path.context;
    if (isDraining) return 'node';
    const headers = this.#headersAt(bytes, start);
    if (typeof headers === 'string') return headers;
    const tokenId = createPlant.cachedTokenId(headers.tokenHash);
    if (tokenId === undefined) {
      const { accessTokens } = createPlant;
      if (headers.accessToken === undefined || accessTokens === undefined) return 'node';
      void accessTokens.verify(headers.accessToken).then(() => this.#verified(headers.tokenHash));
      return 'unverified';
    }
    const bodyStart = start + headers.section.length;
    const end = bodyStart + headers.bodyBytes;
    if (end > bytes.length) return 'incomplete';
    if (!this.#budget().hasTime(start === 0 ? this.#arrivedAt : undefined)) return 'tickBudget';
    const body = bytes.slice(bodyStart, end);
    const trace = traceContextOf(headers.traceparent);
    const isOnlySender = this.#countRequest() > ONLY_SENDER_REQUESTS;
    const response = createPlant.createOnFastPath(body, { recordedBy: tokenId, trace, isOnlySender });
    const request = {
      arrivedAt: this.#arrivedAt,
      bodyBytes: headers.bodyBytes,
      body,
      tokenId,
      contentType: headers.contentType,
      forwardedFor: headers.forwardedFor,
      host: headers.host,
      userAgent: headers.userAgent,
      trace,
      response: undefined,
    };
    this.#responses.add(request, response);
    return end;
  }

  /** @returns how many requests this connection has sent in a row, one at a time */
  #countRequest(): number {
    const path = this.#path;
    const isInARow = path.lastSender === this && this.#responses.length === 0;
    path.lastSender = this;
    path.requestsInARow = isInARow ? path.requestsInARow + 1 : 1;
    return path.requestsInARow;
  }

  /** @returns the headers of the request that begins at `start`, or why there are none */
  #headersAt(received: string, start: number): FastPathHeaders | 'incomplete' | 'node' {
    const latest = this.#latest;
    // This takes half the time of `startsWith`.
    if (latest && received.slice(start, start + latest.section.length) === latest.section) return latest;
    const text = received.slice(start, start + FAST_PATH_HEADERS_BYTES_MAX + HEADERS_END.length);
    const headersLength = text.indexOf(HEADERS_END);
    if (headersLength === -1)
      return text.startsWith('P') && text.length <= FAST_PATH_HEADERS_BYTES_MAX ? 'incomplete' : 'node';
    // A copy: a slice would keep all received bytes in memory.
    const section = Buffer.from(text.slice(0, headersLength + HEADERS_END.length), 'latin1');
    const headers = fastPathHeadersOf(section.toString('latin1'));
    const bodyBytesMax = Math.min(this.#path.context.createPlant.bodyBytesMax, SHORT_BODY_BYTES_MAX);
    if (headers === undefined || headers.bodyBytes > bodyBytesMax) return 'node';
    this.#latest = headers;
    return headers;
  }

  #stop(rest: string, reason: PauseReason | 'incomplete', isContinued: boolean): void {
    this.#unprocessed = rest;
    if (reason === 'incomplete' && !isContinued) {
      if (this.#responses.length === 0) this.#enter('requestRest');
      return;
    }
    this.#pauseReason = reason === 'incomplete' ? 'node' : reason;
    this.#socket.pause();
    if (reason === 'tickBudget') this.#budget().defer(() => this.#resume());
    else if (reason !== 'unverified') this.proceed();
  }

  /** A token that stays unknown, such as a revoked one, goes to Node's HTTP server. */
  #verified(tokenHash: string): void {
    if (this.#pauseReason !== 'unverified') return;
    if (this.#path.context.createPlant.cachedTokenId(tokenHash) === undefined) this.#pauseReason = 'node';
    if (this.#pauseReason === 'node') this.proceed();
    else this.#resume();
  }

  /** Processes and reads again, unless the connection was closed or moved to Node's HTTP server. */
  #resume(): void {
    if (this.#pauseReason === undefined || this.#socket.destroyed) return;
    this.#pauseReason = undefined;
    this.#socket.resume();
    this.#processAll('');
  }

  readonly #onWrite = (isLast: boolean): void => {
    this.#unusedChecks = 0;
    if (this.#socket.writableLength > 0) this.#enter('clientRead');
    if (isLast) lingeringClose(this.#socket);
    else this.proceed();
  };

  readonly #onTimeout = (): void => {
    if (this.#state === 'firstRequest') this.#reject(errorResponse('tooSlow'));
    else if (this.#state === 'requestRest' && this.#unprocessed !== '') this.#moveToNode();
    else if (this.#socket.writableLength > 0) this.destroy();
    else if (this.#responses.length > 0 || this.#state === 'clientRead') this.#enter('nextRequest');
    else this.destroy();
  };

  readonly #handlers: [event: string, handle: () => void][] = [
    ['end', this.proceed],
    ['drain', this.proceed],
    ['timeout', this.#onTimeout],
    ['error', this.destroy],
    ['close', () => this.#path.connections.delete(this)],
  ];

  #reject(error: HttpResponse): void {
    this.#unprocessed = '';
    closeWithError(this.#socket, error, this.#path.context);
  }

  #moveToNode(): void {
    const socket = this.#socket;
    this.#pauseReason = undefined;
    for (const [event, handle] of this.#handlers) socket.off(event, handle);
    readIntoStream(socket, READ_BUFFER);
    this.#path.connections.delete(this);
    const received = this.#unprocessed;
    this.#unprocessed = '';
    this.#path.moveToNode(socket, received);
  }
}
