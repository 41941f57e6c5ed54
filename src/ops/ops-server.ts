import type { AddressInfo } from 'node:net';
import fastify, { type FastifyInstance } from 'fastify';
import { errorBody } from '../contract/errors.ts';
import type { Metrics } from './metrics.ts';
import type { ObservedService } from './observed-service.ts';
import { readinessOf } from './readiness.ts';

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
    this.#app = fastify({ forceCloseConnections: true });
    this.#app.setNotFoundHandler((_request, reply) =>
      reply
        .code(404)
        .send(
          errorBody(
            'noSuchPath',
            'there is nothing at this path; try GET /livez, GET /readyz or GET /metrics',
          ),
        ),
    );
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
