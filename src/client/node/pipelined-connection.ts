import type { Socket } from 'node:net';
import { IDLE_CONNECTION_MS, PIPELINE_MAX } from '../limits.ts';
import { type HttpResponse, NoResponse, type Post, responseBytesMax } from '../transport.ts';
import { NotHttp, readHttpResponse } from './http-response-parser.ts';

export class PipelinedRequest implements Post {
  readonly text: string;
  readonly response: Promise<HttpResponse>;
  /** Whether nobody waits for the answer any more. */
  isAbandoned = false;
  /** The connection that carries it. */
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
 * One connection that sends requests without waiting for the answers to those before (pipelining); requests that come
 * together go in one write. It carries a single request until an answer has shown that it lasts: what is behind an
 * answer that closes the connection would be lost (RFC 9112 section 9.3.2).
 *
 * An answer has its time to arrive whole from when it is the next one to come, however many pieces it comes in. While no
 * request is on it, the connection does not keep the process from ending, and is closed after a while.
 */
export class PipelinedConnection {
  readonly #socket: Socket;
  readonly #responseTimeoutMs: number;
  readonly #onResponses: () => void;
  readonly #onClose: (unsent: PipelinedRequest[]) => void;
  /** In the order in which their answers come. */
  #pending: PipelinedRequest[] = [];
  /** How many of the unanswered, from the first on, are written; only these can have been answered. */
  #writtenCount = 0;
  #unwritten = '';
  /** What has arrived of an answer that is not whole. */
  #arrived = '';
  #lasts = false;
  /** Whether the service said that it takes nothing more on this connection. */
  #saidLast = false;
  /** Why requests fail that were not answered. */
  #failure = new NoResponse('ECONNRESET');
  /** Runs from when a request becomes the first of the unanswered, or from when there is none. */
  #timer: ReturnType<typeof setTimeout> | undefined;

  /**
   * @param onResponses is called when responses have arrived; there may be room for more requests then
   * @param onClose is called when it is closed, with the requests to be sent on another one: those behind a response with
   *   which the service closes the connection (RFC 9112 section 9.6)
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
    this.#socket.on('data', (chunk: string) => this.#take(chunk, false));
    this.#socket.on('end', () => {
      this.#take('', true);
      this.#cut();
    });
    this.#socket.on('error', (error: NodeJS.ErrnoException) => {
      this.#failure = new NoResponse(error.code ?? 'ECONNRESET', error);
    });
    this.#socket.on('close', () => this.#closed());
  }

  get hasRoom(): boolean {
    const { length } = this.#pending;
    return !this.#socket.destroyed && !this.#saidLast && length < (this.#lasts ? PIPELINE_MAX : 1);
  }

  send(request: PipelinedRequest): void {
    this.#pending.push(request);
    request.onAbandon = () => this.#abandoned();
    if (this.#pending.length === 1) {
      this.#socket.ref();
      this.#startTimer();
    }
    // The answers that have arrived make room for more, so what they let through is waited for.
    if (this.#unwritten === '') setImmediate(() => this.#write());
    this.#unwritten += request.text;
  }

  /** Cuts the connection. What was not answered fails. */
  close(): void {
    this.#saidLast = false;
    this.#fail('ECONNABORTED');
  }

  #write(): void {
    if (!this.#socket.destroyed) this.#socket.write(this.#unwritten);
    this.#unwritten = '';
    this.#writtenCount = this.#pending.length;
  }

  #take(chunk: string, hasEnded: boolean): void {
    const text = this.#arrived + chunk;
    let start = 0;
    try {
      while (!this.#saidLast && this.#writtenCount > 0) {
        const request = this.#pending[0]!;
        const response = readHttpResponse(text, start, hasEnded, responseBytesMax(request.text));
        if (response === undefined) break;
        start = response.end;
        this.#saidLast = response.isLast;
        this.#lasts = true;
        this.#writtenCount--;
        this.#pending.shift();
        request.resolve(response);
      }
    } catch (error) {
      if (!(error instanceof NotHttp)) throw error;
      this.#fail('EPROTO');
      return;
    }
    this.#arrived = text.slice(start);
    if (this.#saidLast) this.#cut();
    // Such as the answer to a connection on which nothing came; it belongs to no request that has yet to be written.
    else if (this.#writtenCount === 0 && this.#arrived !== '') this.#fail('EPROTO');
    else if (start > 0) this.#startTimer();
    if (start > 0) this.#onResponses();
  }

  #startTimer(): void {
    clearTimeout(this.#timer);
    if (this.#pending.length > 0) {
      this.#timer = setTimeout(() => this.#fail('ETIMEDOUT'), this.#responseTimeoutMs);
    } else {
      this.#socket.unref();
      this.#timer = setTimeout(() => this.#cut(), IDLE_CONNECTION_MS);
      this.#timer.unref();
    }
  }

  /** A request cannot be taken back; so where nobody waits for any answer, the connection is given up. */
  #abandoned(): void {
    if (this.#pending.length > 0 && this.#pending.every(({ isAbandoned }) => isAbandoned)) this.#cut();
  }

  #fail(code: string): void {
    this.#failure = new NoResponse(code);
    this.#cut();
  }

  #cut(): void {
    clearTimeout(this.#timer);
    this.#socket.destroy();
  }

  #closed(): void {
    clearTimeout(this.#timer);
    const left = this.#pending.filter(({ isAbandoned }) => !isAbandoned);
    this.#pending = [];
    if (!this.#saidLast) for (const request of left) request.reject(this.#failure);
    this.#onClose(this.#saidLast ? left : []);
  }
}
