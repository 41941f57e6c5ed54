import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { Socket } from 'node:net';
import {
  HEADER_BYTES_MAX,
  HEADERS_WAIT_MS,
  KEEP_ALIVE_MS,
  REQUEST_WAIT_MS,
  STALLED_CONNECTION_MS,
  WAIT_CHECK_INTERVAL_MS,
} from '../contract/limits.ts';
import { errorAnswer } from './answer.ts';
import { type Connections, refuse } from './connections.ts';
import { fieldValues } from './header-fields.ts';

/** RFC 3986 section 3.2: host and port, without user information. */
const HOST = /^(?:\[[0-9A-Za-z:.%_~-]+\]|[0-9A-Za-z\-._~%!$&'()*+,;=]*)(?::[0-9]*)?$/;
/** RFC 9112 section 3.2.2: a server must accept the absolute form, which a request to a proxy has. */
const ABSOLUTE_FORM = /^https?:\/\/[^/?#]*([^#]*)/i;

/**
 * Makes Node's HTTP server with every limit set, and with the answers that Node would give by itself (an empty body
 * for a missing Host, a 100 before the credential was seen, 417) given by us instead.
 *
 * @param listener gets each request that is HTTP; its target is in origin form
 */
export function createNodeServer(connections: Connections, listener: RequestListener): Server {
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
  // Cuts a client that stops reading its answers: Node then stops reading too, and nothing moves any more.
  server.timeout = STALLED_CONNECTION_MS;
  // A client may close its sending side behind its last request and still wants the answer.
  (server as Server & { httpAllowHalfOpen: boolean }).httpAllowHalfOpen = true;

  const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    if (!connections.begin(request, response)) return;
    if (hasOneHost(request)) {
      request.url = originForm(request.url!);
      listener(request, response);
    } else {
      connections.refuse(request, response);
    }
  };
  server.on('request', onRequest);
  // Without these two, Node invites a body before the credential was looked at, and answers other expectations itself.
  server.on('checkContinue', onRequest);
  server.on('checkExpectation', onRequest);
  server.on('connect', (_request, socket) =>
    refuse(socket as Socket, errorAnswer('methodNotAllowed', undefined, ['Allow', 'POST'])),
  );
  return server;
}

/** RFC 9112 section 3.2: one valid Host field in a request of HTTP/1.1; otherwise 400. */
function hasOneHost(request: IncomingMessage): boolean {
  const hosts = fieldValues(request.rawHeaders, 'host');
  if (hosts.length === 0) return request.httpVersion === '1.0';
  return hosts.length === 1 && HOST.test(hosts[0]!);
}

function originForm(target: string): string {
  if (target.startsWith('/')) return target;
  const pathAndQuery = ABSOLUTE_FORM.exec(target)?.[1];
  if (pathAndQuery === undefined) return target;
  return pathAndQuery.startsWith('/') ? pathAndQuery : `/${pathAndQuery}`;
}
