import { type AddressInfo, Server as NetServer } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { SHUTDOWN_MS } from '../contract/limits.ts';
import { type FastPath, FastPathConnection } from './fast-path-connection.ts';
import { FIRST_REQUEST_BUDGET_MS, PIPELINED_BUDGET_MS, SHUTDOWN_GRACE_MS } from './limits.ts';
import { type ListenAddress, listen } from './listen.ts';
import type { Exchange } from './node-connection.ts';
import { NodeServer, pathOf } from './node-server.ts';
import { RequestBody } from './request-body.ts';
import { errorResponse, type HttpResponse } from './response.ts';
import type { Listener, PlantService } from './server-context.ts';
import { TickBudget } from './tick-budget.ts';

/** The HTTP listener of the service. */
export class PlantServer {
  readonly #listener: Listener;
  readonly #fastPath: FastPath;
  readonly #node: NodeServer;
  #shutDown = false;

  constructor(service: PlantService) {
    this.#listener = { ...service, isDraining: false };
    this.#node = new NodeServer(
      this.#listener,
      socket => new FastPathConnection(socket, this.#fastPath),
      exchange => void this.#take(exchange),
    );
    this.#fastPath = {
      listener: this.#listener,
      firstRequestBudget: new TickBudget(FIRST_REQUEST_BUDGET_MS),
      pipelinedBudget: new TickBudget(PIPELINED_BUDGET_MS),
      open: new Set(),
      leaveToNode: (socket, read) => this.#node.serve(socket, read),
    };
  }

  openConnections(): Promise<number> {
    return new Promise(resolve => this.#node.server.getConnections((_error, count) => resolve(count)));
  }

  /** @throws {ListenFailed} when the address cannot be had */
  listen(address: ListenAddress): Promise<AddressInfo> {
    return listen(this.#node.server, address);
  }

  /**
   * Stops taking connections, answers what was taken, and cuts what is left when the time for it is over.
   *
   * Idle connections are kept for a moment, since a request may be on its way. The last answer on each connection closes it.
   * What begins after that moment is answered 503.
   */
  async close(): Promise<void> {
    this.#listener.isDraining = true;
    // A request that has begun to arrive is the HTTP server's to wait for.
    for (const connection of this.#fastPath.open) connection.goOn();
    // Not the HTTP server's own `close` yet, which would stop its time limits.
    const allClosed = new Promise(resolve => NetServer.prototype.close.call(this.#node.server, resolve));
    await wait(SHUTDOWN_GRACE_MS);
    this.#shutDown = true;
    this.#node.server.close();
    for (const connection of this.#fastPath.open) connection.closeIfIdle();
    const deadline = new AbortController();
    await Promise.race([
      allClosed,
      wait(SHUTDOWN_MS - SHUTDOWN_GRACE_MS, undefined, { signal: deadline.signal }),
    ]);
    deadline.abort();
    this.#node.server.closeAllConnections();
    for (const connection of this.#fastPath.open) connection.close();
  }

  async #take(exchange: Exchange): Promise<void> {
    const response = await this.#respondTo(exchange).catch(cause => {
      this.#listener.failed(cause);
      return errorResponse('internal');
    });
    if (response !== undefined) await exchange.connection.response(exchange, response);
  }

  /** The only place where paths and methods are told apart; the fast path takes `POST /plants` alone. */
  async #respondTo(exchange: Exchange): Promise<HttpResponse<string | Uint8Array> | undefined> {
    const { method, url, rawHeaders } = exchange.request;
    const { crossOrigin, documentation } = this.#listener;
    const path = pathOf(url!);
    if (path === '/plants') {
      if (method === 'POST') return this.#createPlant(exchange);
      const preflight = crossOrigin?.preflightResponse(method, rawHeaders);
      return preflight ?? errorResponse('methodNotAllowed', undefined, ['Allow', 'POST']);
    }
    const handler = documentation?.get(path);
    if (handler === undefined) return errorResponse('noSuchPath');
    if (method === 'GET' || method === 'HEAD') return handler(rawHeaders);
    return errorResponse('methodNotAllowed', undefined, ['Allow', 'GET, HEAD']);
  }

  /** @returns undefined when nobody waits for an answer any more, or the request has had one */
  async #createPlant(exchange: Exchange): Promise<HttpResponse | undefined> {
    if (this.#shutDown) return errorResponse('shuttingDown');
    const { createPlant } = this.#listener;
    const { request, serverResponse } = exchange;
    const admitted = await createPlant.admit(request.rawHeaders);
    if ('status' in admitted) return admitted;
    using body = new RequestBody(createPlant.bodyBytesMax);
    const bytes = await body.read(request, serverResponse);
    if (bytes === undefined) return undefined;
    if (bytes === 'tooLarge') return errorResponse('bodyTooLarge', undefined, admitted.fields);
    if (bytes === 'noRoom') return errorResponse('busy', NO_ROOM, admitted.fields);
    Object.assign(exchange, { arrivedAt: performance.now(), bodyBytes: bytes.length });
    const reading = await createPlant.read(
      bytes,
      () => !serverResponse.headersSent && !serverResponse.destroyed,
    );
    if (reading === undefined) return undefined;
    // The token may have been revoked while the body arrived or was read.
    if (createPlant.cachedTokenId(admitted.tokenHash) === undefined) return errorResponse('tokenRejected');
    return createPlant.create(admitted, reading);
  }
}

const NO_ROOM = 'more long bodies are arriving than the service can take; send this plant again shortly';
