import type { Server as HttpServer, IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { HEADER_BYTES_MAX, REQUEST_TIMEOUT_MS } from '../contract/limits.ts';
import { fieldValues } from './header-fields.ts';
import { HEADERS_TIMEOUT_MS, KEEP_ALIVE_MS, STALLED_CHECK_MS } from './limits.ts';
import { type Exchange, NodeConnection } from './node-connection.ts';
import { createServer } from './node-http.ts';
import { allowHalfOpen, closeIdleExcept, takeConnectionListener } from './node-internals.ts';
import { errorResponse } from './response.ts';
import type { ServerContext } from './server-context.ts';
import { TickBudget } from './tick-budget.ts';

/** Node checks this often for timeouts of header sections and of whole requests. */
export const TIMEOUT_CHECK_INTERVAL_MS = 500;
/** Time per tick for the parser of Node's HTTP server; its responses take about as long again. */
const NODE_SERVER_BUDGET_MS = 1;

/** RFC 3986 section 3.2: host and port, without user information. */
const HOST = /^(?:\[[0-9A-Za-z:.%_~-]+\]|[0-9A-Za-z\-._~%!$&'()*+,;=]*)(?::[0-9]*)?$/;
/** RFC 9112 section 3.2.2: a server must accept the absolute form, which is meant for proxies. */
const ABSOLUTE_FORM = /^https?:\/\/[^/?#]*([^#]*)/i;

/** Node's HTTP server. It handles every request that is not on the fast path. */
export class NodeServer {
  /** Accepts the connections of both paths. */
  readonly server: HttpServer;
  readonly #context: ServerContext;
  readonly #route: (exchange: Exchange) => void;
  readonly #budget = new TickBudget(NODE_SERVER_BUDGET_MS);
  readonly #connections = new Map<Socket, NodeConnection>();
  readonly #attachParser: (socket: Socket) => void;

  /** Calls `accept` with each new connection, and `route` with each valid request. */
  constructor(context: ServerContext, accept: (socket: Socket) => void, route: (exchange: Exchange) => void) {
    this.#context = context;
    this.#route = route;
    const server = createServer({
      maxHeaderSize: HEADER_BYTES_MAX,
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      connectionsCheckingInterval: TIMEOUT_CHECK_INTERVAL_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      // `isValidRequest` checks Host, so that the error response has the Error shape.
      requireHostHeader: false,
    });
    this.server = server;
    // With a maximum, Node silently drops further headers, such as a second Authorization.
    server.maxHeadersCount = 0;
    server.timeout = STALLED_CHECK_MS;
    allowHalfOpen(server);
    this.#attachParser = takeConnectionListener(server);
    server.on('connection', accept);
    // Without the last two, Node itself sends 100 (Continue) or 417 before the token is validated.
    for (const event of ['request', 'checkContinue', 'checkExpectation']) server.on(event, this.#receive);
    // Without this listener, Node cuts the connection. NodeConnection handles its timeout.
    server.on('timeout', () => {});
    server.on('clientError', (error, socket) => this.#connections.get(socket as Socket)?.onError(error));
    // Without this listener, Node would close the connection without a response.
    server.on('connect', (_request, socket) => {
      // Node has removed its own error listener. An error without a listener ends the process.
      socket.on('error', () => socket.destroy());
      const error = errorResponse('methodNotAllowed', undefined, ['Allow', 'POST']);
      this.#connections.get(socket as Socket)?.endWith(error);
    });
    server.closeIdleConnections = () => this.#closeIdle();
  }

  /** Serves a connection from now on. `received` is the received part of its next request, one character per byte. */
  serve(socket: Socket, received = ''): void {
    // The bytes go back before the parser listens, so that they are parsed within the tick budget.
    socket.pause();
    socket.unshift(received, 'latin1');
    this.#attachParser(socket);
    this.#connections.set(socket, new NodeConnection(socket, this.#context, this.#budget));
    socket.on('close', () => this.#connections.delete(socket));
  }

  get openConnections(): number {
    return this.#connections.size;
  }

  readonly #receive = (request: IncomingMessage, serverResponse: ServerResponse): void => {
    const exchange = this.#connections.get(request.socket)?.begin(request, serverResponse);
    if (exchange === undefined) return;
    if (isValidRequest(request)) this.#route(exchange);
    else exchange.connection.reject(exchange);
  };

  /** Node would also close connections with unparsed bytes or unread responses. */
  #closeIdle(): void {
    const busy = this.#connections.entries().filter(([, connection]) => !connection.isIdle);
    closeIdleExcept(
      this.server,
      Array.from(busy, ([socket]) => socket),
    );
  }
}

/** Checks the rules of RFC 9112 that Node's parser does not check. */
function isValidRequest({ headers, rawHeaders, httpVersion, url }: IncomingMessage): boolean {
  // Section 2.3. The parser also accepts versions 0.9 and 2.0 in the form of version 1.
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return false;
  // Section 6.1. HTTP/1.0 has no Transfer-Encoding, so a proxy may see another end of the request.
  // `chunked` is the only coding that the service decodes.
  const coding = headers['transfer-encoding'];
  if (coding !== undefined && (httpVersion === '1.0' || coding.toLowerCase() !== 'chunked')) return false;
  // Section 3.2.1: the target of a request has no fragment.
  if (url!.includes('#')) return false;
  // Section 3.2: one valid Host field in a request of HTTP/1.1.
  const hosts = fieldValues(rawHeaders, 'host');
  if (hosts.length === 0) return httpVersion === '1.0';
  return hosts.length === 1 && HOST.test(hosts[0]!);
}

/** The path of a target in origin or absolute form, decoded except for delimiters, if decodable. */
export function pathOf(target: string): string {
  const [, afterHost = target] = ABSOLUTE_FORM.exec(target) ?? [];
  const path = afterHost.replace(/\?.*/s, '');
  try {
    return decodeURI(path);
  } catch {
    return path;
  }
}
