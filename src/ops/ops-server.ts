import { STATUS_CODES } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import fastify, { type FastifyInstance } from 'fastify';
import { COMMON_HEADERS } from '../contract/answer-headers.ts';
import { ERRORS, type ErrorBody, errorBody, parserErrorName } from '../contract/errors.ts';
import type { Metrics } from './metrics.ts';
import type { ObservedService } from './observed-service.ts';
import { readinessOf } from './readiness.ts';

const NOTHING_HERE = errorBody(
  'noSuchPath',
  'there is nothing at this path; try GET /livez, GET /readyz or GET /metrics',
);

/**
 * The listener for operators and orchestrators, apart from the one for clients so that it need not be reachable
 * where that one is.
 *
 * - `GET /livez`: 200 as long as the process answers at all; touches nothing.
 * - `GET /readyz`: 200 when plants can be taken, with the warnings if there are any, else 503 with the reason; with
 *   `?verbose` also each thing that was looked at.
 * - `GET /metrics`: figures for Prometheus.
 */
export class OpsServer {
  readonly #app: FastifyInstance;

  constructor(service: ObservedService, metrics: Metrics) {
    this.#app = fastify({
      forceCloseConnections: true,
      // Checked below: what Node answers by itself has none of our headers.
      http: { requireHostHeader: false },
      clientErrorHandler: (error, socket) => refuse(socket, errorBody(parserErrorName(error.code))),
      // A path that is no percent-encoding.
      frameworkErrors: (_error, { raw }, reply) => {
        reply.hijack();
        refuse(raw.socket, NOTHING_HERE);
      },
    });
    this.#app.server.on('checkExpectation', (request, response) =>
      this.#app.server.emit('request', request, response),
    );
    this.#app.addHook('onRequest', async (request, reply) => {
      reply.headers(COMMON_HEADERS);
      if (request.raw.httpVersion === '1.1' && request.headers.host === undefined)
        return reply.code(ERRORS.badHttp.status).header('Connection', 'close').send(errorBody('badHttp'));
      // Before a body is read, which nothing here takes.
      if (request.is404) return reply.code(404).send(NOTHING_HERE);
    });
    this.#app.get('/livez', () => ({ status: 'live' }));
    this.#app.get('/readyz', async (request, reply) => {
      const { checks, ...readiness } = await readinessOf(service);
      const listed = Object.hasOwn(request.query as object, 'verbose') ? { checks } : {};
      if (!readiness.ready) {
        return reply.code(503).send({ status: 'not ready', reason: readiness.reason, ...listed });
      }
      const { warnings } = readiness;
      return { status: 'ready', ...(warnings.length === 0 ? {} : { warnings }), ...listed };
    });
    this.#app.get('/metrics', async (_request, reply) =>
      reply.type(metrics.contentType).send(await metrics.text(service)),
    );
  }

  /** @throws when the address cannot be had, with the code of the system (`EADDRINUSE`, `EACCES`, …) */
  async listen(address: { host: string; port: number }): Promise<AddressInfo> {
    await this.#app.listen(address);
    return this.#app.server.address() as AddressInfo;
  }

  close(): Promise<void> {
    return this.#app.close();
  }
}

/** Answers what never became a request to the routes, and closes the connection. */
function refuse(socket: Socket, fault: ErrorBody): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const status = Math.floor(fault.error / 100);
  const body = JSON.stringify(fault);
  const fields = {
    'Content-Type': 'application/json',
    ...COMMON_HEADERS,
    'Content-Length': Buffer.byteLength(body),
    Date: new Date().toUTCString(),
    Connection: 'close',
  };
  const lines = Object.entries(fields).map(([field, value]) => `${field}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`);
}
