import type { Socket } from 'node:net';
import type { ReceivedRequest } from '../core/request.ts';
import type { HttpResponse } from '../core/response.ts';
import { clientAddress } from './client-address.ts';
import type { Output } from './output.ts';
import type { ServerContext } from './server-context.ts';

const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';

/** The connection whose responses a {@link ResponseWriter} writes. */
export interface WrittenConnection {
  readonly socket: Socket;
  readonly output: Output;
  /** Whether no byte of a further request has arrived, while the service shuts down. */
  readonly isInputOver: () => boolean;
  /** Called after each write. */
  readonly onWrite: (isLast: boolean) => void;
}

/** Writes responses of one connection, several with one write, and shows them to observers. */
export class ResponseWriter {
  readonly #connection: WrittenConnection;
  readonly #context: ServerContext;
  /** What the next write contains. */
  #text = '';
  /** Called when the client has taken the next write. */
  #onTaken: (() => void)[] = [];

  constructor(connection: WrittenConnection, context: ServerContext) {
    this.#connection = connection;
    this.#context = context;
  }

  /** Whether the connection is closed, such as by a reset. Then nothing can be written. */
  get isClosed(): boolean {
    return this.#connection.socket.destroyed;
  }

  /** Whether the client has not taken all that was written. */
  get isWaiting(): boolean {
    return this.#connection.output.isWaiting;
  }

  /**
   * Adds a response to the next write. If the connection ends after it, it is written at once.
   *
   * @param request undefined if the received bytes were no request
   * @param isLast whether the connection must end after it
   * @param isLatest whether no further request was read, so the connection may end after it
   * @param onTaken called when the client has taken the response; not if the connection ends before
   * @returns whether the connection goes on
   */
  add(
    response: HttpResponse,
    request: ReceivedRequest | undefined,
    isLast: boolean,
    isLatest: boolean,
    onTaken: (() => void) | undefined,
  ): boolean {
    const { socket, output, isInputOver, onWrite } = this.#connection;
    const { delivery } = response;
    const asksToBeLast = delivery?.kind === 'whole' && delivery.isLast;
    const endsAfterIt = isLast || (isLatest && (asksToBeLast || isInputOver()));
    this.#observe(response, request);
    const headers = this.#context.responseHeaders.textOf(response, endsAfterIt, request);
    if (delivery?.kind === 'cut') {
      this.#text += delivery.partOf(headers, response.body);
      this.#onTaken.push(() => socket.destroy());
      this.#flush();
      return false;
    }
    this.#text += headers;
    if (request?.headers.method !== 'HEAD') this.#text += response.body;
    if (onTaken !== undefined) this.#onTaken.push(onTaken);
    if (delivery !== undefined) this.#onTaken.push(() => delivery.onTaken(!socket.readableEnded));
    if (!endsAfterIt) return true;
    this.#flush();
    output.end();
    onWrite(true);
    return false;
  }

  /** Adds 100 (Continue) to the next write. */
  addContinue(): void {
    this.#text += CONTINUE;
  }

  /** Writes all that was added. The connection goes on. */
  write(): void {
    this.#flush();
    this.#connection.onWrite(false);
  }

  #flush(): void {
    const [text, onTaken] = [this.#text, this.#onTaken];
    this.#text = '';
    if (onTaken.length === 0) {
      if (text !== '') this.#connection.output.write(text);
      return;
    }
    this.#onTaken = [];
    this.#connection.output.write(text, () => {
      for (const each of onTaken) each();
    });
  }

  #observe(response: HttpResponse, request: ReceivedRequest | undefined): void {
    const { clock, observers } = this.#context;
    const durationMs = request === undefined ? 0 : clock.now() - request.arrivedAt;
    for (const observer of observers) observer.responded(response, request, durationMs, this.#addressOf);
  }

  /** Observers get it as a callback, because few of them need the address. */
  readonly #addressOf = (request: ReceivedRequest | undefined): string | undefined => {
    const { remoteAddress } = this.#connection.socket;
    return clientAddress(remoteAddress, request?.headers.forwardedFor, this.#context.trustedProxies);
  };
}
