import type { Socket } from 'node:net';
import { fastPathHeadersOf } from './fast-path-headers.ts';
import {
  FAST_PATH_HEADERS_BYTES_MAX,
  FAST_PATH_PIPELINE_MAX,
  FAST_PATH_REST_TIMEOUT_MS,
  HEADERS_TIMEOUT_MS,
  KEEP_ALIVE_MARGIN_MS,
  KEEP_ALIVE_MS,
  SHORT_BODY_BYTES_MAX,
  STALLED_CHECK_MS,
} from './limits.ts';
import { closeWithError, lingeringClose } from './lingering-close.ts';
import { errorResponse, type HttpResponse } from './response.ts';
import { type Pending, ResponseQueue } from './response-queue.ts';
import type { Listener } from './server-context.ts';
import type { TickBudget } from './tick-budget.ts';

const HEADERS_END = '\r\n\r\n';
/** The first byte of `POST`. */
const POST_P = 0x50;

/** What all connections of the fast path are served with. */
export interface FastPath {
  readonly listener: Listener;
  /**
   * For requests whose connection awaits no other response, and for those that it sends meanwhile. The two share each
   * iteration of the event loop, so that a client that sends one plant at a time does not wait for those that send thousands.
   */
  readonly firstRequestBudget: TickBudget;
  readonly pipelinedBudget: TickBudget;
  /** All connections that are on the fast path now. */
  readonly open: Set<FastPathConnection>;
  /** Has Node's HTTP server serve a connection from here on, beginning with what was read of its next request. */
  leaveToNode(socket: Socket, read: Buffer | undefined): void;
}

/** What a connection waits for while nothing moves on it, and for how long. */
const TIMEOUT_MS = {
  first: HEADERS_TIMEOUT_MS,
  rest: FAST_PATH_REST_TIMEOUT_MS,
  reader: STALLED_CHECK_MS,
  next: KEEP_ALIVE_MS + KEEP_ALIVE_MARGIN_MS,
};

/**
 * A connection on the fast path: its requests are parsed here, past Node's HTTP server, which costs more than all the rest
 * of a create (docs/performance.md).
 *
 * A request stays on the fast path when {@link fastPathHeadersOf} takes its header section, its token is in force, its body is short,
 * and it arrives whole or in two pieces. Several may arrive in one piece. The first that is anything else goes to Node's HTTP server with its
 * connection, for good. So nothing is refused here for its form or its token.
 *
 * | waits for | event | next | what is sent |
 * |---|---|---|---|
 * | `first` byte | nothing came in time | closed in stages | 408 |
 * | `first`, `next` request | whole requests | `next` | their responses, in order |
 * | `first`, `next` | a part of a request | its `rest`, once no response is pending | |
 * | `rest` | all of it | `next` | its response |
 * | `rest` | a part of it, or nothing in time | Node | |
 * | any | requests that may not be taken yet: too many responses pending, or its turn is over | the same; they go back into the socket | |
 * | any | a request that is not for the fast path | Node, behind the pending responses | |
 * | any | the client ends its side, and all was read | closed, behind the pending responses | 400 where a part of a request is there |
 * | any | a response that the client has not read | `reader` | |
 * | `reader` | nothing moved in time | cut where a response is still unread, else `next` | |
 * | `next` | nothing came in time | cut, unless a response is pending | |
 * | any | the service shuts down | Node with what was not taken; closed in stages behind the last response, or idle for a moment | |
 */
export class FastPathConnection {
  readonly #socket: Socket;
  readonly #path: FastPath;
  readonly #responses: ResponseQueue;
  /** The first piece of a request, whose rest is still to come. */
  #held: Buffer | undefined;
  /** When the last piece came. */
  #arrivedAt = 0;
  /**
   * Why reading has stopped: until responses are written, until the next turn, or until Node has the connection. What was not
   * taken is back in the socket, so its `end` comes after that was read again.
   */
  #stoppedFor: 'room' | 'turn' | 'node' | undefined;
  #waitsFor: keyof typeof TIMEOUT_MS = 'first';
  /** Whether the client has ended its side; it may still want its responses. */
  #hasEnded = false;

  constructor(socket: Socket, path: FastPath) {
    this.#socket = socket;
    this.#path = path;
    const isLast = (): boolean => path.listener.isDraining && !this.#hasMore;
    this.#responses = new ResponseQueue(socket, path.listener, isLast, this.#onWritten);
    path.open.add(this);
    this.#waitFor('first');
    for (const [event, handle] of this.#handlers) socket.on(event, handle);
  }

  /** Closes the connection if it awaits no response, behind those that the client has yet to read. */
  closeIfIdle(): void {
    if (this.#responses.length === 0 && !this.#hasMore) lingeringClose(this.#socket);
  }

  /** Whether something has arrived that is not taken. */
  get #hasMore(): boolean {
    return this.#held !== undefined || this.#stoppedFor !== undefined;
  }

  /** Cuts the connection. */
  readonly close = (): void => {
    this.#socket.destroy();
  };

  /** Turns to what has arrived, or to the end of the connection, once no response is pending. */
  readonly goOn = (): void => {
    if (this.#responses.length > 0) return;
    if (!this.#hasMore) {
      if (this.#hasEnded) this.#socket.end();
      return;
    }
    if (this.#socket.writableNeedDrain) return;
    if (this.#hasEnded) this.#reject(errorResponse('badHttp'));
    else if (this.#stoppedFor === 'node' || this.#path.listener.isDraining) this.#leave();
    else if (this.#stoppedFor === undefined) this.#waitFor('rest');
    // What waits for its turn goes on by itself.
    else if (this.#stoppedFor === 'room') this.#readOn();
  };

  readonly #onData = (chunk: Buffer): void => {
    const held = this.#held;
    if (this.#waitsFor === 'first' || this.#waitsFor === 'rest')
      this.#waitFor(this.#socket.writableLength > 0 ? 'reader' : 'next');
    this.#held = undefined;
    this.#arrivedAt = performance.now();
    if (held === undefined) this.#takeAll(chunk, false);
    else this.#takeAll(Buffer.concat([held, chunk]), true);
  };

  #waitFor(what: keyof typeof TIMEOUT_MS): void {
    this.#waitsFor = what;
    this.#socket.setTimeout(TIMEOUT_MS[what]);
  }

  /** @param isContinued whether this begins with a request whose first piece came before */
  #takeAll(arrived: Buffer, isContinued: boolean): void {
    let start = 0;
    while (start < arrived.length) {
      const isFull = this.#responses.length >= FAST_PATH_PIPELINE_MAX || this.#socket.writableNeedDrain;
      const end = isFull ? 'room' : this.#take(arrived, start);
      if (typeof end !== 'number') {
        this.#setAside(arrived.subarray(start), end, isContinued && start === 0);
        return;
      }
      start = end;
    }
  }

  /** The turns that the next request counts against. */
  get #budget(): TickBudget {
    return this.#responses.length === 0 ? this.#path.firstRequestBudget : this.#path.pipelinedBudget;
  }

  /** @returns where the request that begins at `start` ends, if it was taken */
  #take(arrived: Buffer, start: number): number | 'incomplete' | 'turn' | 'node' {
    const { createPlant, isDraining } = this.#path.listener;
    if (isDraining) return 'node';
    const headersEnd = arrived.indexOf(HEADERS_END, start, 'latin1');
    if (headersEnd === -1)
      return arrived[start] === POST_P && arrived.length - start <= FAST_PATH_HEADERS_BYTES_MAX
        ? 'incomplete'
        : 'node';
    const headers = fastPathHeadersOf(arrived.toString('latin1', start, headersEnd));
    if (headers === undefined || headers.bodyBytes > Math.min(createPlant.bodyBytesMax, SHORT_BODY_BYTES_MAX))
      return 'node';
    const tokenId = createPlant.cachedTokenId(headers.tokenHash);
    if (tokenId === undefined) return 'node';
    const bodyStart = headersEnd + HEADERS_END.length;
    const end = bodyStart + headers.bodyBytes;
    if (end > arrived.length) return 'incomplete';
    if (!this.#budget.hasTime(start === 0 ? this.#arrivedAt : undefined)) return 'turn';
    const pending: Pending = {
      response: undefined,
      arrivedAt: this.#arrivedAt,
      bodyBytes: headers.bodyBytes,
    };
    this.#responses.add(pending, createPlant.createOnFastPath(tokenId, arrived.subarray(bodyStart, end)));
    return end;
  }

  #setAside(rest: Buffer, why: 'room' | 'turn' | 'incomplete' | 'node', isContinued: boolean): void {
    if (why === 'incomplete' && !isContinued) {
      this.#held = rest;
      if (this.#responses.length === 0) this.#waitFor('rest');
      return;
    }
    this.#stoppedFor = why === 'incomplete' ? 'node' : why;
    this.#socket.pause();
    this.#socket.unshift(rest);
    if (why === 'turn') this.#budget.wait(() => this.#readOn());
    else this.goOn();
  }

  /** Reads on, unless the connection was closed or left to Node's HTTP server meanwhile. */
  #readOn(): void {
    if (this.#stoppedFor === undefined || this.#socket.destroyed) return;
    this.#stoppedFor = undefined;
    this.#socket.resume();
    // At once, within the turn; `resume` alone reads later.
    this.#socket.read();
  }

  readonly #onWritten = (isLast: boolean): void => {
    if (this.#socket.writableLength > 0) this.#waitFor('reader');
    if (isLast) lingeringClose(this.#socket);
    else this.goOn();
  };

  readonly #onEnd = (): void => {
    this.#hasEnded = true;
    this.goOn();
  };

  /** Nothing has moved on the connection for a while. */
  readonly #onTimeout = (): void => {
    const socket = this.#socket;
    if (this.#waitsFor === 'first') this.#reject(errorResponse('tooSlow'));
    else if (this.#waitsFor === 'rest' && this.#held !== undefined) this.#leave();
    else if (socket.writableLength > 0) socket.destroy();
    else if (this.#responses.length > 0 || this.#waitsFor === 'reader') this.#waitFor('next');
    else socket.destroy();
  };

  /** Of its socket, as long as it is on the fast path. */
  readonly #handlers: [event: string, handle: (chunk: Buffer) => void][] = [
    ['data', this.#onData],
    ['end', this.#onEnd],
    ['drain', this.goOn],
    ['timeout', this.#onTimeout],
    ['error', this.close],
    ['close', () => this.#path.open.delete(this)],
  ];

  #reject(error: HttpResponse): void {
    this.#held = undefined;
    closeWithError(this.#socket, error, this.#path.listener);
  }

  #leave(): void {
    const socket = this.#socket;
    const held = this.#held;
    this.#held = undefined;
    this.#stoppedFor = undefined;
    for (const [event, handle] of this.#handlers) socket.off(event, handle);
    this.#path.open.delete(this);
    this.#path.leaveToNode(socket, held);
  }
}
