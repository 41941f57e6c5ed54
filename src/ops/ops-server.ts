import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { COMMON_HEADERS } from '../contract/answer-headers.ts';
import { ERRORS, type ErrorName, errorBody, parserErrorName } from '../contract/errors.ts';
import { OPS_KEEP_ALIVE_MS } from './limits.ts';
import type { Metrics } from './metrics.ts';
import type { ObservedService } from './observed-service.ts';
import { readinessOf } from './readiness.ts';

const NOTHING_HERE = 'there is nothing at this path; try GET /livez, GET /readyz or GET /metrics';

/** Status, content type and body of a response. */
type Reply = [status: number, contentType: string, body: string];

/**
 * The listener for operators and orchestrators, apart from the one for clients so that it need not be reachable
 * where that one is.
 *
 * - `GET /livez`: 200 as long as the process answers at all; touches nothing.
 * - `GET /readyz`: 200 when plants can be taken, with the warnings if there are any, else 503 with the reason; with
 *   `?verbose` also each check that was made.
 * - `GET /metrics`: figures for Prometheus.
 */
export class OpsServer {
  // Node's own response to a missing Host would have none of our headers; it is checked below.
  readonly #server = createServer({ requireHostHeader: false, keepAliveTimeout: OPS_KEEP_ALIVE_MS });
  readonly #paths: ReadonlyMap<string, (query: URLSearchParams) => Promise<Reply>>;

  constructor(service: ObservedService, metrics: Metrics) {
    this.#paths = new Map<string, (query: URLSearchParams) => Promise<Reply>>([
      ['/livez', async () => json(200, { status: 'live' })],
      [
        '/readyz',
        async query => {
          const { checks, ...readiness } = await readinessOf(service);
          const body = query.has('verbose') ? { ...readiness, checks } : readiness;
          return json(readiness.status === 'ready' ? 200 : 503, body);
        },
      ],
      ['/metrics', async () => [200, metrics.contentType, await metrics.text(service)]],
    ]);
    for (const event of ['request', 'checkExpectation'])
      this.#server.on(event, (request, response) => this.#respond(request, response));
    this.#server.on('clientError', (error: NodeJS.ErrnoException, socket) =>
      rejectConnection(socket, parserErrorName(error.code)),
    );
  }

  async #respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [status, contentType, body] = await this.#replyTo(request, response).catch(() =>
      errorReply('internal'),
    );
    response.writeHead(status, headersOf(contentType, body)).end(body);
  }

  async #replyTo(request: IncomingMessage, response: ServerResponse): Promise<Reply> {
    const { method = '', url = '', headers, httpVersion } = request;
    if (httpVersion === '1.1' && headers.host === undefined) {
      response.setHeader('Connection', 'close');
      return errorReply('badHttp');
    }
    const [path = '', query] = url.split('?', 2);
    const reply = ['GET', 'HEAD'].includes(method) ? this.#paths.get(path) : undefined;
    return (await reply?.(new URLSearchParams(query))) ?? errorReply('noSuchPath', NOTHING_HERE);
  }

  /** @throws when the address cannot be had, with the code of the system (`EADDRINUSE`, `EACCES`, …) */
  async listen(address: { host: string; port: number }): Promise<AddressInfo> {
    this.#server.listen(address);
    await once(this.#server, 'listening');
    return this.#server.address() as AddressInfo;
  }

  async close(): Promise<void> {
    const closed = new Promise(resolve => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }
}

function json(status: number, body: object): Reply {
  return [status, 'application/json', JSON.stringify(body)];
}

function errorReply(name: ErrorName, message?: string): Reply {
  return json(ERRORS[name].status, errorBody(name, message));
}

function headersOf(contentType: string, body: string): Record<string, string | number> {
  return { 'Content-Type': contentType, ...COMMON_HEADERS, 'Content-Length': Buffer.byteLength(body) };
}

/** Responds to what never became a request, and closes the connection. */
function rejectConnection(socket: Duplex, name: ErrorName): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const [status, contentType, body] = errorReply(name);
  const headers = { ...headersOf(contentType, body), Date: new Date().toUTCString(), Connection: 'close' };
  const lines = Object.entries(headers).map(([field, value]) => `${field}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`);
}
