import type { Socket } from 'node:net';
import { errorResponse, type HttpResponse, type ReceivedRequest, responseText } from './response.ts';
import type { Listener } from './server-context.ts';

/** A request whose response is not written yet. */
export interface Pending extends ReceivedRequest {
  response: HttpResponse | undefined;
}

/** Writes the responses of one connection in the order of its requests, those to plants of one commit in one write. */
export class ResponseQueue {
  readonly #socket: Socket;
  readonly #listener: Listener;
  readonly #isLast: () => boolean;
  readonly #written: (isLast: boolean) => void;
  readonly #pending: Pending[] = [];
  #isWriteDue = false;

  /**
   * @param isLast asked when no further response is pending: whether the connection is closed behind this one
   * @param written told of each write
   */
  constructor(socket: Socket, listener: Listener, isLast: () => boolean, written: (isLast: boolean) => void) {
    this.#socket = socket;
    this.#listener = listener;
    this.#isLast = isLast;
    this.#written = written;
  }

  /** How many responses are pending. */
  get length(): number {
    return this.#pending.length;
  }

  /** Has a response written when it is there, and those to all requests before it. */
  add(pending: Pending, promised: Promise<HttpResponse>): void {
    this.#pending.push(pending);
    promised.then(
      response => this.#ready(pending, response),
      cause => {
        this.#listener.failed(cause);
        this.#ready(pending, errorResponse('internal'));
      },
    );
  }

  #ready(pending: Pending, response: HttpResponse): void {
    pending.response = response;
    if (this.#pending.length === 1) this.#write();
    else if (!this.#isWriteDue) {
      // A tick runs when all promises that one commit has settled have called this: one write for all of them.
      this.#isWriteDue = true;
      process.nextTick(() => this.#write());
    }
  }

  #write(): void {
    this.#isWriteDue = false;
    const { onResponse, documentation } = this.#listener;
    if (this.#socket.destroyed) return;
    let text = '';
    let isLast = false;
    for (let next = this.#pending[0]; next?.response !== undefined; next = this.#pending[0]) {
      this.#pending.shift();
      isLast = this.#pending.length === 0 && this.#isLast();
      onResponse(next.response, next, this.#socket);
      text += responseText(next.response, isLast, documentation !== undefined);
    }
    if (text !== '') this.#socket.write(text);
    this.#written(isLast);
  }
}
