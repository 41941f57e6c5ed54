import type { Server as HttpServer, IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { HEADER_BYTES_MAX, REQUEST_TIMEOUT_MS } from '../contract/limits.ts';
import { fieldValues } from './header-fields.ts';
import {
  HEADERS_TIMEOUT_MS,
  KEEP_ALIVE_MS,
  NODE_SERVER_BUDGET_MS,
  STALLED_CHECK_MS,
  TIMEOUT_CHECK_INTERVAL_MS,
} from './limits.ts';
import { type Exchange, NodeConnection } from './node-connection.ts';
import { createServer, Server } from './node-http.ts';
import { errorResponse } from './response.ts';
import type { Listener } from './server-context.ts';
import { TickBudget } from './tick-budget.ts';

/** RFC 3986 section 3.2: host and port, without user information. */
const HOST = /^(?:\[[0-9A-Za-z:.%_~-]+\]|[0-9A-Za-z\-._~%!$&'()*+,;=]*)(?::[0-9]*)?$/;
/** RFC 9112 section 3.2.2: a server must accept the absolute form, which a request to a proxy has. */
const ABSOLUTE_FORM = /^https?:\/\/[^/?#]*([^#]*)/i;

/** Node's HTTP server, for every request that is not on the fast path. */
export class NodeServer {
  /** It accepts the connections of both. */
  readonly server: HttpServer;
  readonly #listener: Listener;
  readonly #handle: (exchange: Exchange) => void;
  readonly #budget = new TickBudget(NODE_SERVER_BUDGET_MS);
  readonly #connections = new Map<Socket, NodeConnection>();
  /** Node's own listeners, which give a connection its HTTP parser. */
  readonly #parse: ((this: HttpServer, socket: Socket) => void)[];

  /**
   * @param accept gets each new connection
   * @param handle gets each valid request
   */
  constructor(listener: Listener, accept: (socket: Socket) => void, handle: (exchange: Exchange) => void) {
    this.#listener = listener;
    this.#handle = handle;
    const server = createServer({
      maxHeaderSize: HEADER_BYTES_MAX,
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      connectionsCheckingInterval: TIMEOUT_CHECK_INTERVAL_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      // Checked below, where it can be answered in the Error shape.
      requireHostHeader: false,
    });
    this.server = server;
    // Past a number of headers Node drops the rest unseen, a second Authorization among them; the size is the limit.
    server.maxHeadersCount = 0;
    server.timeout = STALLED_CHECK_MS;
    // A client may close its sending side behind its last request and still wants the response.
    (server as HttpServer & { httpAllowHalfOpen: boolean }).httpAllowHalfOpen = true;

    this.#parse = server.listeners('connection') as ((this: HttpServer, socket: Socket) => void)[];
    server.removeAllListeners('connection').on('connection', accept);
    // Without the last two, Node invites a body before the credential was validated, and answers other expectations itself.
    for (const event of ['request', 'checkContinue', 'checkExpectation']) server.on(event, this.#onRequest);
    // Each connection hears of it by itself; without a listener here Node would destroy it.
    server.on('timeout', () => {});
    server.on('clientError', (error, socket) => this.#connections.get(socket as Socket)?.failed(error));
    // Not a proxy: without this, Node would close the connection with no response at all.
    server.on('connect', (_request, socket) => {
      // Node takes its own listener off before it hands the socket over; an error that nobody hears ends the process.
      socket.on('error', () => socket.destroy());
      const error = errorResponse('methodNotAllowed', undefined, ['Allow', 'POST']);
      this.#connections.get(socket as Socket)?.endWith(error);
    });
    server.closeIdleConnections = () => this.#closeIdle();
  }

  /** Serves a connection from here on, beginning with what was read of its next request. */
  serve(socket: Socket, read: Buffer | undefined): void {
    // In this order: what was read is put back before the parser listens, and it is parsed when its turn comes.
    socket.pause();
    if (read !== undefined) socket.unshift(read);
    for (const parse of this.#parse) parse.call(this.server, socket);
    this.#connections.set(socket, new NodeConnection(socket, this.#listener, this.#budget));
    socket.on('close', () => this.#connections.delete(socket));
  }

  readonly #onRequest = (request: IncomingMessage, serverResponse: ServerResponse): void => {
    const exchange = this.#connections.get(request.socket)?.begin(request, serverResponse);
    if (exchange === undefined) return;
    if (isValidRequest(request)) this.#handle(exchange);
    else exchange.connection.reject(exchange);
  };

  /**
   * Node destroys those on which its parser has no part of a request. It does not know of what has arrived and was not parsed,
   * nor whether the client has taken its response: these are kept from it while it does so.
   */
  #closeIdle(): void {
    const busy = [...this.#connections].filter(([, connection]) => !connection.isIdle);
    for (const [socket] of busy) socket.destroy = () => socket;
    Server.prototype.closeIdleConnections.call(this.server);
    for (const [socket] of busy) Reflect.deleteProperty(socket, 'destroy');
  }
}

/** What the parser lets through and RFC 9112 does not. */
function isValidRequest({ headers, rawHeaders, httpVersion, url }: IncomingMessage): boolean {
  // Section 2.3; the parser also takes 0.9 and 2.0 in the form of version 1.
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return false;
  // Section 6.1: HTTP/1.0 has no Transfer-Encoding, so what stands in front of us may see another end of the request; and of
  // other codings than `chunked` we undo none.
  const coding = headers['transfer-encoding'];
  if (coding !== undefined && (httpVersion === '1.0' || coding.toLowerCase() !== 'chunked')) return false;
  // Section 3.2.1: the target of a request has no fragment.
  if (url!.includes('#')) return false;
  // Section 3.2: one valid Host field in a request of HTTP/1.1.
  const hosts = fieldValues(rawHeaders, 'host');
  if (hosts.length === 0) return httpVersion === '1.0';
  return hosts.length === 1 && HOST.test(hosts[0]!);
}

/**
 * @param target in origin form or in absolute form
 * @returns the path without its query, decoded but for encoded delimiters; one that cannot be decoded, as it is
 */
export function pathOf(target: string): string {
  const [, afterHost = target] = ABSOLUTE_FORM.exec(target) ?? [];
  const path = afterHost.replace(/\?.*/s, '');
  try {
    return decodeURI(path);
  } catch {
    return path;
  }
}
