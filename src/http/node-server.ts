import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { HEADER_BYTES_MAX, REQUEST_WAIT_MS } from '../contract/limits.ts';
import { errorAnswer } from './answer.ts';
import type { Connections, Exchange } from './connections.ts';
import { fieldValues } from './header-fields.ts';
import { HEADERS_WAIT_MS, KEEP_ALIVE_MS, STALLED_CONNECTION_MS, WAIT_CHECK_INTERVAL_MS } from './limits.ts';
import { PacedConnection } from './paced-connection.ts';
import { ServerTurns } from './request-turns.ts';

/** RFC 3986 section 3.2: host and port, without user information. */
const HOST = /^(?:\[[0-9A-Za-z:.%_~-]+\]|[0-9A-Za-z\-._~%!$&'()*+,;=]*)(?::[0-9]*)?$/;
/** RFC 9112 section 3.2.2: a server must accept the absolute form, which a request to a proxy has. */
const ABSOLUTE_FORM = /^https?:\/\/[^/?#]*([^#]*)/i;

/**
 * Makes Node's HTTP server with every limit set, and with the answers that Node would give by itself (an empty body
 * for a missing Host, a 100 before the credential was seen, 417) given by us instead.
 *
 * @param listener gets each request that is HTTP
 */
export function createNodeServer(connections: Connections, listener: (exchange: Exchange) => void): Server {
  const server = createServer({
    maxHeaderSize: HEADER_BYTES_MAX,
    headersTimeout: HEADERS_WAIT_MS,
    requestTimeout: REQUEST_WAIT_MS,
    connectionsCheckingInterval: WAIT_CHECK_INTERVAL_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    // Checked below, where it can be answered in the Error shape.
    requireHostHeader: false,
  });
  // Past a number of headers Node drops the rest unseen, a second Authorization among them; the size is the limit.
  server.maxHeadersCount = 0;
  // A client that stops reading its answers: Node then stops reading too, and nothing moves any more. A third of the time,
  // since Node's socket takes the first look at a write that waits for progress, and looks once more.
  server.timeout = STALLED_CONNECTION_MS / 3;
  server.on('connection', socket => {
    socket.destroySoon = () => connections.close(socket);
  });
  server.on('timeout', socket => connections.stalled(socket));
  server.on('clientError', (error, socket) => connections.failed(error, socket as Socket));
  // A client may close its sending side behind its last request and still wants the answer.
  (server as Server & { httpAllowHalfOpen: boolean }).httpAllowHalfOpen = true;

  const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    const exchange = connections.begin(request, response);
    if (exchange === undefined) return;
    if (isValidHead(request)) listener(exchange);
    else connections.refuse(exchange);
  };
  server.on('request', onRequest);
  // Without these two, Node invites a body before the credential was looked at, and answers other expectations itself.
  server.on('checkContinue', onRequest);
  server.on('checkExpectation', onRequest);
  // Not a proxy: without this, Node would close the connection with no answer at all.
  server.on('connect', (_request, socket) => {
    // Node takes its own listener off before it hands the socket over; an error that nobody hears ends the process.
    socket.on('error', () => socket.destroy());
    connections.refuseRest(socket as Socket, errorAnswer('methodNotAllowed', undefined, ['Allow', 'POST']));
  });
  return server;
}

/**
 * Gives new connections to a taker of our own instead of Node's HTTP server.
 *
 * @returns has that server serve a connection after all, beginning with what has arrived on it, at the pace of its answers
 */
export function interceptConnections(
  server: Server,
  take: (socket: Socket) => void,
): (socket: Socket, arrived: Buffer, hasEnded: boolean) => void {
  const listeners = server.listeners('connection') as ((this: Server, socket: Socket) => void)[];
  server.removeAllListeners('connection');
  server.on('connection', take);
  const turns = new ServerTurns();
  const open = new Set<PacedConnection>();
  // Node takes a connection for idle whose request waits for its turn, or whose client has not taken its answer.
  server.closeIdleConnections = () => {
    for (const connection of open) connection.closeIfIdle();
  };
  return (socket, arrived, hasEnded) => {
    const connection = new PacedConnection(socket, arrived, hasEnded, turns);
    open.add(connection);
    connection.on('close', () => open.delete(connection));
    for (const listener of listeners) listener.call(server, connection as Duplex as Socket);
  };
}

/** What the parser lets through and RFC 9112 does not. */
function isValidHead({ headers, rawHeaders, httpVersion, url }: IncomingMessage): boolean {
  // Section 2.3; the parser also takes 0.9 and 2.0 in the form of version 1.
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return false;
  // Section 6.1: HTTP/1.0 has no Transfer-Encoding, so what stands in front of us may see another end of the request.
  if (httpVersion === '1.0' && headers['transfer-encoding'] !== undefined) return false;
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
