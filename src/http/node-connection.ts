import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { crossOriginFields } from './cross-origin.ts';
import { fieldValues } from './header-fields.ts';
import { closeWithError, lingeringClose } from './lingering-close.ts';
import { keepOpenAfterEnd, onLastResponse, TakenParser } from './node-internals.ts';
import { errorResponse, fieldsOf, type HttpResponse, parserError, type ReceivedRequest } from './response.ts';
import type { ServerContext } from './server-context.ts';
import type { TickBudget } from './tick-budget.ts';

/** Bytes that Node's parser gets before it waits for responses: 20 of the shortest requests. */
export const PARSED_CHUNK_BYTES_MAX = 512;

/** A request with its response. */
export interface Exchange extends ReceivedRequest {
  readonly connection: NodeConnection;
  readonly request: IncomingMessage;
  readonly serverResponse: ServerResponse;
}

/**
 * A connection of Node's HTTP server. It writes each response once, in request order. The parser
 * gets small chunks, within a tick budget, so that it parses only few requests ahead of the first
 * pending response. The rest goes back into the socket.
 *
 * | state | event | next state | what is sent |
 * |---|---|---|---|
 * | open | request | open | its response, after the earlier ones |
 * | open | last response (1) is ready | ending | it, with `Connection: close` |
 * | open | bytes after a request with `Connection: close` | ending | |
 * | open | error, timeout or client's end within a body | ending | error as the response |
 * | open | request that breaks a rule of RFC 9112 | ending | error as the response |
 * | open | error or timeout before or within headers; CONNECT | ending | |
 * | open | next request does not arrive in time | closed | |
 * | open | shutdown, no response pending | closed | |
 * | ending | request, error | ending | |
 * | ending | all responses written | closing | error (2), if there is one |
 * | open, ending | client does not read a response in time | closed | |
 * | closing | client closes, or {@link lingeringClose} ends | closed | |
 *
 * (1) The response to the latest request, if that request is incomplete or has `Connection: close`,
 * or the service shuts down.
 *
 * (2) Node itself would send the error at once, before the response to an earlier request. The
 * client would take the error for that response, though the plant of that request is stored.
 */
export class NodeConnection {
  readonly #socket: Socket;
  readonly #context: ServerContext;
  readonly #budget: TickBudget;
  readonly #pending = new Set<Exchange>();
  /** The last request that began to arrive. */
  latest: Exchange | undefined;
  /** Resolves when all plants of the requests so far are queued or rejected. */
  queued: Promise<void> = Promise.resolve();
  /** Whether further requests are ignored. */
  #isEnding = false;
  /** The error that is sent after the last response. */
  #finalResponse: HttpResponse | undefined;
  readonly #parser: TakenParser;

  constructor(socket: Socket, context: ServerContext, budget: TickBudget) {
    this.#socket = socket;
    this.#context = context;
    this.#budget = budget;
    this.#parser = new TakenParser(socket, received => this.#parse(received));
    budget.defer(this.#resume);
    socket.on('timeout', () => this.#onTimeout());
    // Node's parser reports nothing if the client ends its side within a request with `Upgrade`.
    socket.on('end', () => {
      if (!this.#isEnding && this.latest?.request.complete === false) this.reject(this.latest);
    });
    onLastResponse(socket, () => {
      this.#isEnding = true;
      lingeringClose(socket);
    });
  }

  /** Whether no response is pending and all received bytes are parsed. */
  get isIdle(): boolean {
    return this.#pending.size === 0 && this.#socket.readableLength === 0 && this.#socket.writable;
  }

  /** @returns undefined for a request after the last one: it gets no response */
  begin(request: IncomingMessage, serverResponse: ServerResponse): Exchange | undefined {
    if (this.#isEnding) return undefined;
    const arrivedAt = performance.now();
    const valuesOf = (name: string) => fieldValues(request.rawHeaders, name);
    const traceparents = valuesOf('traceparent');
    // Node has already read them for its own checks.
    const { host, 'user-agent': userAgent } = request.headers;
    const exchange: Exchange = {
      ...{ connection: this, request, serverResponse, arrivedAt, bodyBytes: 0 },
      trace: this.#context.traceContextOf(traceparents.length === 1 ? traceparents[0] : undefined),
      contentType: valuesOf('content-type').join(', ') || undefined,
      forwardedFor: valuesOf('x-forwarded-for').join(', ') || undefined,
      ...{ host, userAgent },
    };
    this.latest = exchange;
    this.#pending.add(exchange);
    serverResponse.on('close', () => {
      this.#pending.delete(exchange);
      if (this.#finalResponse !== undefined) this.endWith(this.#finalResponse);
      else this.#resume();
    });
    return exchange;
  }

  /** Sends a response, unless the request has one. An incomplete request is the last one. */
  async respond(exchange: Exchange, response: HttpResponse<string | Uint8Array>): Promise<void> {
    if (!exchange.request.complete) await this.#discardRest(exchange);
    const { headersSent, destroyed } = exchange.serverResponse;
    if (headersSent || destroyed) return;
    if (response.ending === 'before') this.#socket.destroy();
    else this.#write(exchange, response);
  }

  /** Rejects a request that is not valid HTTP. All bytes after it are ignored. */
  reject(exchange: Exchange, error = errorResponse('badHttp')): void {
    this.#isEnding = true;
    this.#write(exchange, error);
  }

  /** Handles Node's `clientError` event: the parser found an error, or a request timed out. */
  onError(error: NodeJS.ErrnoException): void {
    if (!this.#socket.writable) this.#socket.destroy();
    if (this.#isEnding || this.#socket.destroyed) return;
    const response = parserError(error);
    // RFC 9112 section 9.6: bytes after a request with `Connection: close` are ignored.
    if (error.code === 'HPE_CLOSED_CONNECTION') this.#isEnding = true;
    else if (this.latest === undefined || this.latest.request.complete) this.endWith(response);
    else this.reject(this.latest, response);
  }

  /** Sends an error after the last response, then closes the connection. */
  endWith(error: HttpResponse): void {
    this.#isEnding = true;
    this.#finalResponse = error;
    keepOpenAfterEnd(this.#socket);
    if (this.#pending.size === 0) closeWithError(this.#socket, error, this.#context);
  }

  #onTimeout(): void {
    const socket = this.#socket;
    // An arriving request has other timeouts, and one that waits for the disk has none.
    const isBetweenRequests = this.latest !== undefined && this.#pending.size === 0;
    if (isBetweenRequests || socket.writableLength > 0) socket.destroy();
    else socket.setTimeout(socket.timeout ?? 0);
  }

  #write(exchange: Exchange, response: HttpResponse<string | Uint8Array>): void {
    const { request, serverResponse } = exchange;
    const { onResponse, mark, corsOrigins, documentation, isDraining } = this.#context;
    onResponse(response, exchange, this.#socket);
    // An idle connection would keep its last body in memory.
    exchange.body = undefined;
    const mayBeLast = exchange === this.latest && this.#finalResponse === undefined;
    const isEnding = this.#isEnding || response.ending === 'after';
    const isLast = mayBeLast && (isEnding || !request.complete || isDraining);
    // RFC 9112 section 9.6: after a response that closes the connection, no request is processed.
    if (isLast) this.#isEnding = true;
    // Without a `Connection` field, Node would close after a final response that replaces 100
    // (Continue), even if the request is complete and others follow.
    const isClosing = isLast || !serverResponse.shouldKeepAlive;
    const headers = fieldsOf(response, isClosing, documentation !== undefined);
    headers.push(...crossOriginFields(corsOrigins, request.rawHeaders));
    headers.push(...(mark?.(response, serverResponse) ?? []));
    serverResponse.writeHead(response.status, headers);
    if (response.ending !== 'within') serverResponse.end(response.body);
    else serverResponse.end(response.body.slice(0, response.body.length / 2), () => this.#socket.destroy());
  }

  /** While responses are pending, only the rest of a body is parsed. */
  get #mayParse(): boolean {
    if (this.#isEnding || this.#socket.destroyed) return false;
    if (this.#pending.size === 0) return true;
    const { complete, readableLength, readableHighWaterMark } = this.latest!.request;
    return this.#pending.size === 1 && !complete && readableLength < readableHighWaterMark;
  }

  /** Parses the bytes that were put back, if that is allowed now. */
  readonly #resume = (): void => {
    if (!this.#mayParse || !this.#socket.isPaused()) return;
    this.#socket.resume();
    // `resume` alone would read in a later tick.
    this.#socket.read();
  };

  /** @returns how many bytes were parsed, or the error in them */
  #parse(received: Buffer): number | Error {
    let start = 0;
    while (start < received.length) {
      if (!this.#mayParse || !this.#budget.hasTime()) {
        this.#socket.pause();
        this.#socket.unshift(received.subarray(start));
        if (this.#mayParse) this.#budget.defer(this.#resume);
        break;
      }
      const parsed = this.#parseChunk(received.subarray(start, start + PARSED_CHUNK_BYTES_MAX));
      if (parsed instanceof Error) return parsed;
      start += parsed;
      if (this.#parser.isConnect) {
        this.#parser.release();
        break;
      }
    }
    return start;
  }

  /**
   * The parser stops after a request with `Upgrade`, also if the response to it is HTTP/1.1. Node
   * would drop the following bytes. Here they are parsed. Until the next header section ends, the
   * parser then stops at an error without reporting it.
   */
  #parseChunk(chunk: Buffer): number | Error {
    const before = this.latest;
    const wasComplete = before?.request.complete;
    const parsed = this.#parser.execute(chunk);
    if (parsed instanceof Error || parsed === chunk.length || this.#parser.isConnect) return parsed;
    const isBehindRequest = this.latest?.request.complete && (this.latest !== before || !wasComplete);
    return isBehindRequest ? parsed : new Error('invalid HTTP after a request with Upgrade');
  }

  /** Discards the rest of a rejected request. If it is complete then, the connection stays open. */
  async #discardRest({ request }: Exchange): Promise<void> {
    // This is the latest request. Its body is parsed after the earlier requests have responses.
    const previous = [...this.#pending].at(-2);
    if (previous !== undefined) await new Promise(resolve => previous.serverResponse.on('close', resolve));
    request.resume();
    // Bytes that arrive before the first callback are parsed before the second one.
    for (let tick = 0; tick < 2; tick++) await this.#budget.nextTick();
  }
}
