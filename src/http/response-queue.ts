import type { Socket } from 'node:net';
import { errorResponse, type HttpResponse, type ReceivedRequest, responseText } from './response.ts';
import type { ServerContext } from './server-context.ts';

/** A request whose response is not written yet. */
interface PendingRequest extends ReceivedRequest {
  response: HttpResponse | undefined;
}

/** Writes the responses of one connection in request order. One commit causes one write. */
export class ResponseQueue {
  readonly #socket: Socket;
  readonly #context: ServerContext;
  readonly #isLast: () => boolean;
  readonly #onWrite: (isLast: boolean) => void;
  readonly #pending: PendingRequest[] = [];
  /** Body bytes of the pending requests. A response is about as long as its request. */
  bodyBytes = 0;
  #isWriteScheduled = false;

  /** @param isLast whether the last pending response closes the connection */
  constructor(
    socket: Socket,
    context: ServerContext,
    isLast: () => boolean,
    onWrite: (last: boolean) => void,
  ) {
    this.#socket = socket;
    this.#context = context;
    this.#isLast = isLast;
    this.#onWrite = onWrite;
  }

  get length(): number {
    return this.#pending.length;
  }

  /** Adds a request. Its response is written when it and all responses before it are ready. */
  add(request: PendingRequest, response: Promise<HttpResponse>): void {
    this.#pending.push(request);
    this.bodyBytes += request.bodyBytes;
    response.then(
      ready => this.#setResponse(request, ready),
      cause => {
        this.#context.onInternalError(cause, request);
        this.#setResponse(request, errorResponse('internal'));
      },
    );
  }

  #setResponse(request: PendingRequest, response: HttpResponse): void {
    request.response = response;
    if (this.#pending.length === 1) this.#write();
    else if (!this.#isWriteScheduled) {
      // `nextTick` runs after all promises that one commit settles: one write for all of them.
      this.#isWriteScheduled = true;
      process.nextTick(() => this.#write());
    }
  }

  #write(): void {
    this.#isWriteScheduled = false;
    const { onResponse, documentation } = this.#context;
    if (this.#socket.destroyed) return;
    let text = '';
    let isLast = false;
    for (let next = this.#pending[0]; next?.response !== undefined; next = this.#pending[0]) {
      this.#pending.shift();
      this.bodyBytes -= next.bodyBytes;
      isLast = this.#pending.length === 0 && this.#isLast();
      onResponse(next.response, next, this.#socket);
      text += responseText(next.response, isLast, documentation !== undefined);
    }
    if (text !== '') this.#socket.write(text);
    this.#onWrite(isLast);
  }
}
