import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { closeWithError, lingeringClose } from './lingering-close.ts';
import { NodeParser } from './node-parser.ts';
import {
  errorResponse,
  fieldsOf,
  type HttpResponse,
  parserErrorResponse,
  type ReceivedRequest,
} from './response.ts';
import type { Listener } from './server-context.ts';
import type { TickBudget } from './tick-budget.ts';

/** A request and its response. */
export interface Exchange extends ReceivedRequest {
  readonly connection: NodeConnection;
  readonly request: IncomingMessage;
  readonly serverResponse: ServerResponse;
}

/** llhttp's code for bytes behind a request with `Connection: close`. RFC 9112 section 9.6: not processed. */
const BEHIND_LAST_REQUEST = 'HPE_CLOSED_CONNECTION';

/**
 * A connection that Node's HTTP server has. It bounds what that server parses ahead, and writes each request's response
 * once, in order.
 *
 * | state | event | next state | what is sent |
 * |---|---|---|---|
 * | open | request | open | its response, behind those of the requests before it |
 * | open | the response to the latest request, if that is not whole or says it is the last one, or during shutdown | ending | it, with `Connection: close` |
 * | open | bytes behind a request that says it is the last one | ending | |
 * | open | fault, timeout or the client's end within a body; or a request that breaks a rule which the parser does not check | ending | the error as its response |
 * | open | fault or timeout between requests or within a header section, or CONNECT | ending | |
 * | open | no further request comes in time, or the service shuts down and nothing is pending | closed | |
 * | ending | request, fault | ending | |
 * | ending | the last response is written | closing | the error that was held back, if there is one |
 * | open, ending | nothing moves while a response is not read | closed | |
 * | closing | the client closes, or {@link lingeringClose} has waited long enough | closed | |
 *
 * Node would write an error for junk at once, before the plant of the request in front of it is durable: the client would
 * take the error for that request's response though its plant is stored.
 */
export class NodeConnection {
  readonly #socket: Socket;
  readonly #listener: Listener;
  readonly #budget: TickBudget;
  readonly #pending = new Set<Exchange>();
  /** The last request that began to arrive. */
  #latest: Exchange | undefined;
  /** Whether no further request is taken. */
  #isEnding = false;
  /** Sent behind the response of the last request. */
  #lastError: HttpResponse | undefined;
  readonly #parser: NodeParser;

  /** @param socket that Node's HTTP server listens to */
  constructor(socket: Socket, listener: Listener, budget: TickBudget) {
    this.#socket = socket;
    this.#listener = listener;
    this.#budget = budget;
    this.#parser = new NodeParser(socket, budget, this);
    socket.on('timeout', () => this.#stalled());
    // Node's parser reports nothing when the client ends its side within a request with `Upgrade`.
    socket.on('end', () => {
      if (!this.#isEnding && this.#latest?.request.complete === false) this.reject(this.#latest);
    });
    // Node calls this behind a response with `Connection: close`.
    socket.destroySoon = () => {
      this.#isEnding = true;
      lingeringClose(socket);
    };
  }

  /** Whether no response is pending, and all that has arrived is parsed. */
  get isIdle(): boolean {
    return this.#pending.size === 0 && this.#socket.readableLength === 0 && this.#socket.writable;
  }

  /** @returns undefined for a request behind the last one that is taken: it gets no response */
  begin(request: IncomingMessage, serverResponse: ServerResponse): Exchange | undefined {
    if (this.#isEnding) return undefined;
    const exchange = {
      connection: this,
      request,
      serverResponse,
      arrivedAt: performance.now(),
      bodyBytes: 0,
    };
    this.#latest = exchange;
    this.#pending.add(exchange);
    serverResponse.on('close', () => {
      this.#pending.delete(exchange);
      if (this.#lastError !== undefined) this.endWith(this.#lastError);
      else this.#parser.readOn();
    });
    return exchange;
  }

  /** Answers a request, unless that was done already. Where the client has not sent all of it, the connection is closed. */
  async response(exchange: Exchange, response: HttpResponse<string | Uint8Array>): Promise<void> {
    if (!exchange.request.complete) await this.#readRest(exchange);
    const { headersSent, destroyed } = exchange.serverResponse;
    if (!headersSent && !destroyed) this.#write(exchange, response);
  }

  /** Answers a request in which something is not valid HTTP; nothing behind it is taken. */
  reject(exchange: Exchange, error = errorResponse('badHttp')): void {
    this.#isEnding = true;
    this.#write(exchange, error);
  }

  /** Takes what Node's `clientError` event tells: the parser gave up, or a request took too long. */
  failed(error: NodeJS.ErrnoException): void {
    if (!this.#socket.writable) this.#socket.destroy();
    if (this.#isEnding || this.#socket.destroyed) return;
    const response = parserErrorResponse(error);
    if (error.code === BEHIND_LAST_REQUEST) this.#isEnding = true;
    else if (this.#latest === undefined || this.#latest.request.complete) this.endWith(response);
    else this.reject(this.#latest, response);
  }

  /** Sends an error behind the response to the last request, and closes the connection. */
  endWith(error: HttpResponse): void {
    this.#isEnding = true;
    this.#lastError = error;
    // Else Node would end our side as soon as the client ends its own.
    this.#socket.removeAllListeners('end');
    if (this.#pending.size === 0) closeWithError(this.#socket, error, this.#listener);
  }

  /**
   * Takes the `timeout` event of the socket: nothing has moved for a while. That ends a connection whose client reads no responses, or
   * that was kept open for another request. A request that is still arriving has limits of its own, and one that waits for
   * the disk may wait.
   */
  #stalled(): void {
    const socket = this.#socket;
    const isKeptOpen = this.#latest !== undefined && this.#pending.size === 0;
    if (isKeptOpen || socket.writableLength > 0) socket.destroy();
    else socket.setTimeout(socket.timeout ?? 0);
  }

  #write(exchange: Exchange, response: HttpResponse<string | Uint8Array>): void {
    const { request, serverResponse } = exchange;
    const { onResponse, crossOrigin, documentation, isDraining } = this.#listener;
    onResponse(response, exchange, this.#socket);
    const mayBeLast = exchange === this.#latest && this.#lastError === undefined;
    const isLast = mayBeLast && (this.#isEnding || !request.complete || isDraining);
    // RFC 9112 section 9.6: behind a response that closes the connection no further request is processed.
    if (isLast) this.#isEnding = true;
    // Explicit: without it, Node closes behind a response that comes instead of the 100 (Continue) that was asked for,
    // though the request is whole and further ones may have been taken.
    const isClosing = isLast || !serverResponse.shouldKeepAlive;
    const headers = fieldsOf(response, isClosing, documentation !== undefined);
    if (crossOrigin !== undefined) headers.push(...crossOrigin.fieldsFor(request.rawHeaders));
    serverResponse.writeHead(response.status, headers).end(response.body);
  }

  get latestRequest(): IncomingMessage | undefined {
    return this.#latest?.request;
  }

  /** While responses are pending, only the rest of a body is parsed. */
  get mayRead(): boolean {
    if (this.#isEnding || this.#socket.destroyed) return false;
    if (this.#pending.size === 0) return true;
    const { complete, readableLength, readableHighWaterMark } = this.#latest!.request;
    return this.#pending.size === 1 && !complete && readableLength < readableHighWaterMark;
  }

  /** Reads and drops what has arrived of a refused request: one that is whole leaves its connection open. */
  async #readRest({ request }: Exchange): Promise<void> {
    // It is the last one. Nothing more is read before the requests in front of it have their responses.
    const previous = [...this.#pending].at(-2);
    if (previous !== undefined) await new Promise(resolve => previous.serverResponse.on('close', resolve));
    request.resume();
    // Turns are taken in order. What arrives before the first one is parsed just before the second, at the latest.
    for (let tick = 0; tick < 2; tick++) await new Promise<void>(resolve => this.#budget.wait(resolve));
  }
}
