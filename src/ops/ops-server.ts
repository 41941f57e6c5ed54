import type { AddressInfo } from 'node:net';
import fastify, { type FastifyInstance } from 'fastify';
import { errorBody } from '../contract/errors.ts';

/** Whether plants can be taken now: what an operator should know though they can, or why they can't; a sentence each. */
export type Readiness = { ready: true; warnings: readonly string[] } | { ready: false; reason: string };

/** What the operations listener asks of the service; never throws. */
export interface ServiceState {
  readiness(): Promise<Readiness>;
}

/**
 * The listener for operators and orchestrators, apart from the one for clients so that it need not be reachable
 * where that one is.
 *
 * - `GET /livez`: 200 as long as the process answers at all; touches nothing.
 * - `GET /readyz`: 200 when plants can be taken, with the warnings if there are any, else 503 with the reason.
 */
export class OpsServer {
  readonly #app: FastifyInstance;

  constructor(state: ServiceState) {
    this.#app = fastify({ forceCloseConnections: true });
    this.#app.setNotFoundHandler((_request, reply) =>
      reply
        .code(404)
        .send(errorBody('noSuchPath', 'there is nothing at this path; try GET /livez or GET /readyz')),
    );
    this.#app.get('/livez', () => ({ status: 'live' }));
    this.#app.get('/readyz', async (_request, reply) => {
      const readiness = await state.readiness();
      if (!readiness.ready) return reply.code(503).send({ status: 'not ready', reason: readiness.reason });
      const { warnings } = readiness;
      return warnings.length === 0 ? { status: 'ready' } : { status: 'ready', warnings };
    });
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
