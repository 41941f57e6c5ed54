import type { Socket } from 'node:net';
import { IDLE_CONNECTION_MS, PIPELINE_MAX } from '../limits.ts';
import { type HttpResponse, NoResponse, type Post, responseBytesMax } from '../transport.ts';
import { NotHttp, readHttpResponse } from './http-response-parser.ts';

export class PipelinedRequest implements Post {
  readonly text: string;
  readonly response: Promise<HttpResponse>;
  /** Whether no caller waits for the response any more. */
  isAbandoned = false;
  /** Listener of the connection that carries the request. */
  onAbandon: (() => void) | undefined;
  resolve!: (response: HttpResponse) => void;
  reject!: (error: unknown) => void;

  constructor(text: string) {
    this.text = text;
    this.response = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }

  abandon(reason: unknown): void {
    this.isAbandoned = true;
    this.reject(reason);
    this.onAbandon?.();
  }
}

/**
 * One connection with HTTP pipelining: it sends requests before earlier responses have arrived.
 * Requests of one event-loop iteration go in one write. A new connection carries a single request,
 * since requests behind a response that closes the connection are lost (RFC 9112 section 9.3.2).
 *
 * | state | event | next state | what is sent |
 * |---|---|---|---|
 * | new | `send` | new | this request; there is no room for a second one |
 * | new | a response | persistent | up to `PIPELINE_MAX` requests in flight |
 * | persistent | a response | persistent | up to `PIPELINE_MAX` requests in flight |
 * | any | a response that closes the connection | closed | `onClose` gets the requests behind it |
 * | any | timeout, socket error, bytes that are not HTTP | closed | requests in flight fail |
 * | any | `close()` | closed | requests in flight fail |
 * | any | all requests in flight are abandoned | closed | nothing; none can be cancelled |
 * | persistent | no request for `IDLE_CONNECTION_MS` | closed | nothing |
 *
 * The response timeout covers the complete response. It starts when the response is the next one to
 * arrive, and not again at each chunk. An idle connection does not keep the process running.
 */
export class PipelinedConnection {
  readonly #socket: Socket;
  readonly #responseTimeoutMs: number;
  readonly #onResponses: () => void;
  readonly #onClose: (unsent: PipelinedRequest[]) => void;
  /** In the order of their responses. */
  #pending: PipelinedRequest[] = [];
  /** How many pending requests, from the first on, are written. Only these can get a response. */
  #writtenCount = 0;
  #unwritten = '';
  /** Received bytes of an incomplete response. */
  #received = '';
  #isPersistent = false;
  /** Whether a response has closed the connection for further requests. */
  #isClosing = false;
  /** The error of requests in flight when the connection closes. */
  #failure = new NoResponse('ECONNRESET');
  /** Response timeout while requests are pending, idle timeout otherwise. */
  #timer: ReturnType<typeof setTimeout> | undefined;

  /**
   * @param onResponses called after responses have arrived; there may be room for more requests
   * @param onClose called when the connection is closed, with the requests to send on another one.
   *   They followed a response that closes the connection (RFC 9112 section 9.6).
   */
  constructor(
    socket: Socket,
    responseTimeoutMs: number,
    onResponses: () => void,
    onClose: (unsent: PipelinedRequest[]) => void,
  ) {
    this.#socket = socket;
    this.#responseTimeoutMs = responseTimeoutMs;
    this.#onResponses = onResponses;
    this.#onClose = onClose;
    this.#socket.setEncoding('latin1');
    this.#socket.on('data', (chunk: string) => this.#receive(chunk, false));
    this.#socket.on('end', () => {
      this.#receive('', true);
      this.#destroy();
    });
    this.#socket.on('error', (error: NodeJS.ErrnoException) => {
      this.#failure = new NoResponse(error.code ?? 'ECONNRESET', error);
    });
    this.#socket.on('close', () => this.#closed());
  }

  get hasRoom(): boolean {
    const { length } = this.#pending;
    return !this.#socket.destroyed && !this.#isClosing && length < (this.#isPersistent ? PIPELINE_MAX : 1);
  }

  send(request: PipelinedRequest): void {
    this.#pending.push(request);
    request.onAbandon = () => this.#abandoned();
    if (this.#pending.length === 1) {
      this.#socket.ref();
      this.#startTimer();
    }
    // Writes after this event-loop iteration: responses make room for further requests in it.
    if (this.#unwritten === '') setImmediate(() => this.#write());
    this.#unwritten += request.text;
  }

  /** Closes the connection at once. Requests in flight fail. */
  close(): void {
    this.#isClosing = false;
    this.#fail('ECONNABORTED');
  }

  #write(): void {
    if (!this.#socket.destroyed) this.#socket.write(this.#unwritten);
    this.#unwritten = '';
    this.#writtenCount = this.#pending.length;
  }

  #receive(chunk: string, hasEnded: boolean): void {
    const text = this.#received + chunk;
    let start = 0;
    try {
      while (!this.#isClosing && this.#writtenCount > 0) {
        const request = this.#pending[0]!;
        const response = readHttpResponse(text, start, hasEnded, responseBytesMax(request.text));
        if (response === undefined) break;
        start = response.end;
        this.#isClosing = response.closesConnection;
        this.#isPersistent = true;
        this.#writtenCount--;
        this.#pending.shift();
        request.resolve(response);
      }
    } catch (error) {
      if (!(error instanceof NotHttp)) throw error;
      this.#fail('EPROTO');
      return;
    }
    this.#received = text.slice(start);
    if (this.#isClosing) this.#destroy();
    // Unexpected bytes, such as a 408 on an idle connection. They must not match an unwritten
    // request.
    else if (this.#writtenCount === 0 && this.#received !== '') this.#fail('EPROTO');
    else if (start > 0) this.#startTimer();
    if (start > 0) this.#onResponses();
  }

  #startTimer(): void {
    clearTimeout(this.#timer);
    if (this.#pending.length > 0) {
      this.#timer = setTimeout(() => this.#fail('ETIMEDOUT'), this.#responseTimeoutMs);
    } else {
      this.#socket.unref();
      this.#timer = setTimeout(() => this.#destroy(), IDLE_CONNECTION_MS);
      this.#timer.unref();
    }
  }

  #abandoned(): void {
    if (this.#pending.length > 0 && this.#pending.every(({ isAbandoned }) => isAbandoned)) this.#destroy();
  }

  #fail(code: string): void {
    this.#failure = new NoResponse(code);
    this.#destroy();
  }

  #destroy(): void {
    clearTimeout(this.#timer);
    this.#socket.destroy();
  }

  #closed(): void {
    clearTimeout(this.#timer);
    const left = this.#pending.filter(({ isAbandoned }) => !isAbandoned);
    this.#pending = [];
    if (!this.#isClosing) for (const request of left) request.reject(this.#failure);
    this.#onClose(this.#isClosing ? left : []);
  }
}
