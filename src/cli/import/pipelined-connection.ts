import { connect, type Socket } from 'node:net';
import { NotHttp, readHttpAnswer } from './http-answer.ts';
import { ANSWER_WAIT_MS } from './limits.ts';
import { type Answer, readAnswer } from './plant-answer.ts';

/** A request with its head, and who awaits the answer. */
export interface PlantRequest {
  text: string;
  onAnswer: (answer: Answer) => void;
}

/** Where a connection goes. */
export interface Peer {
  host: string;
  port: number;
}

/**
 * One connection that sends requests without waiting for the answers to those before (pipelining); requests that come
 * together go in one write. It carries a single request until an answer has shown that it lasts: what is behind an
 * answer that closes the connection would be lost (RFC 9112 section 9.3.2).
 *
 * An answer has ANSWER_WAIT_MS to arrive whole from when it is the next one to come, however many pieces it comes in.
 */
export class PipelinedConnection {
  readonly #socket: Socket;
  readonly #requestsMax: number;
  readonly #onClose: (unsent: PlantRequest[]) => void;
  /** In the order in which their answers come. */
  #unanswered: PlantRequest[] = [];
  /** How many of the unanswered, from the first on, are written; only these can have been answered. */
  #writtenCount = 0;
  /** Requests that the next write takes. */
  #unwritten = '';
  /** What has arrived of an answer that is not whole. */
  #arrived = '';
  #lasts = false;
  /** Whether the service said that it takes nothing more on this connection. */
  #saidLast = false;
  #cause = 'ECONNRESET';
  /** Runs from when a request becomes the first of the unanswered. */
  #answerTimer: NodeJS.Timeout | undefined;

  /**
   * @param requestsMax how many may await their answers at the same time
   * @param onClose is told once that it is closed, with the requests that are to be sent elsewhere: those behind an
   *   answer with which the service closes the connection (RFC 9112 section 9.6)
   */
  constructor({ host, port }: Peer, requestsMax: number, onClose: (unsent: PlantRequest[]) => void) {
    this.#requestsMax = requestsMax;
    this.#onClose = onClose;
    this.#socket = connect({ host, port, noDelay: true });
    this.#socket.setEncoding('latin1');
    this.#socket.on('data', (piece: unknown) => this.#take(piece as string, false));
    this.#socket.on('end', () => {
      this.#take('', true);
      this.#socket.destroy();
    });
    this.#socket.on('error', error => {
      this.#cause = (error as NodeJS.ErrnoException).code ?? error.message;
    });
    this.#socket.on('close', () => this.#closed());
  }

  get hasRoom(): boolean {
    const { length } = this.#unanswered;
    return !this.#socket.destroyed && !this.#saidLast && length < (this.#lasts ? this.#requestsMax : 1);
  }

  send(request: PlantRequest): void {
    this.#unanswered.push(request);
    if (this.#unanswered.length === 1) this.#startAnswerTimer();
    // The answers that have arrived make room for more, so what they let through is waited for.
    if (this.#unwritten === '') setImmediate(() => this.#write());
    this.#unwritten += request.text;
  }

  /** Cuts the connection. */
  close(): void {
    this.#socket.destroy();
  }

  #write(): void {
    if (!this.#socket.destroyed) this.#socket.write(this.#unwritten);
    this.#unwritten = '';
    this.#writtenCount = this.#unanswered.length;
  }

  #take(piece: string, hasEnded: boolean): void {
    const text = this.#arrived + piece;
    let start = 0;
    try {
      while (!this.#saidLast && this.#writtenCount > 0) {
        const answer = readHttpAnswer(text, start, hasEnded);
        if (answer === undefined) break;
        start = answer.end;
        this.#saidLast = answer.isLast;
        this.#lasts = true;
        this.#writtenCount--;
        this.#unanswered.shift()!.onAnswer(readAnswer(answer.status, answer.headers, answer.body));
      }
    } catch (error) {
      if (!(error instanceof NotHttp)) throw error;
      this.#fail('EPROTO');
      return;
    }
    this.#arrived = text.slice(start);
    if (start > 0) this.#startAnswerTimer();
    if (this.#saidLast) this.#socket.destroy();
    // Such as the answer to a connection on which nothing came; it belongs to no request that has yet to be written.
    else if (this.#writtenCount === 0 && this.#arrived !== '') this.#fail('EPROTO');
  }

  #startAnswerTimer(): void {
    clearTimeout(this.#answerTimer);
    if (this.#unanswered.length === 0) return;
    this.#answerTimer = setTimeout(() => this.#fail('ETIMEDOUT'), ANSWER_WAIT_MS);
  }

  #fail(cause: string): void {
    this.#cause = cause;
    this.#socket.destroy();
  }

  #closed(): void {
    clearTimeout(this.#answerTimer);
    const left = this.#unanswered;
    this.#unanswered = [];
    this.#onClose(this.#saidLast ? left : []);
    if (this.#saidLast) return;
    for (const { onAnswer } of left) onAnswer({ kind: 'no answer', cause: this.#cause });
  }
}
