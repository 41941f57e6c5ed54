import type { AddressInfo, Server as NetServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { SHUTDOWN_MS } from '../contract/limits.ts';
import { preflightResponse } from './cross-origin.ts';
import { type FastPath, FastPathConnection, USE_CHECK_INTERVAL_MS } from './fast-path-connection.ts';
import type { ReservedAddress } from './listen.ts';
import type { Exchange } from './node-connection.ts';
import { stopAccepting } from './node-internals.ts';
import { NodeServer, pathOf } from './node-server.ts';
import { readRequestBody } from './request-body.ts';
import { errorResponse, type HttpResponse } from './response.ts';
import type { ServerContext } from './server-context.ts';
import { TickBudget } from './tick-budget.ts';

/** During shutdown, idle connections stay open for this long. */
export const SHUTDOWN_GRACE_MS = 500;
/** Time per tick for fast path requests from connections without a pending response. */
const FIRST_REQUEST_BUDGET_MS = 8;
/** Time per tick for fast path requests from connections with pending responses. */
const PIPELINED_BUDGET_MS = 0.5;

const TOO_MANY_LONG_BODIES = 'too many long bodies are in memory; send this plant again shortly';

/** The HTTP server for clients. */
export class PlantServer {
  readonly #context: ServerContext;
  readonly #fastPath: FastPath;
  readonly #node: NodeServer;
  /** The HTTP server and the reserved address, which has the connections that waited. */
  readonly #listeners: NetServer[] = [];
  readonly #useChecks: NodeJS.Timeout;
  #isGraceOver = false;

  constructor(context: Omit<ServerContext, 'isDraining'>) {
    this.#context = { ...context, isDraining: false };
    this.#node = new NodeServer(
      this.#context,
      socket => (context.mark ? this.#node.serve(socket) : new FastPathConnection(socket, this.#fastPath)),
      exchange => void this.#respond(exchange),
    );
    this.#fastPath = {
      context: this.#context,
      firstRequestBudget: new TickBudget(FIRST_REQUEST_BUDGET_MS),
      pipelinedBudget: new TickBudget(PIPELINED_BUDGET_MS),
      connections: new Set(),
      lastSender: undefined,
      requestsInARow: 0,
      moveToNode: (socket, received) => this.#node.serve(socket, received),
    };
    this.#useChecks = setInterval(() => {
      for (const connection of this.#fastPath.connections) connection.checkUse();
    }, USE_CHECK_INTERVAL_MS).unref();
  }

  get openConnections(): number {
    return this.#fastPath.connections.size + this.#node.openConnections;
  }

  listen(reserved: ReservedAddress): Promise<AddressInfo> {
    this.#listeners.push(reserved, this.#node.server);
    return reserved.handOver(this.#node.server);
  }

  /**
   * Stops accepting connections and responds to all accepted requests, within {@link SHUTDOWN_MS}.
   * The last response on each connection closes it. Idle connections stay open for
   * {@link SHUTDOWN_GRACE_MS}, since a request may be in flight. Later requests get a 503 response.
   */
  async close(): Promise<void> {
    this.#context.isDraining = true;
    const { connections } = this.#fastPath;
    // Moves partial requests to Node's HTTP server, which waits for the rest.
    for (const connection of connections) connection.proceed();
    const allClosed = Promise.all(this.#listeners.map(stopAccepting));
    await delay(SHUTDOWN_GRACE_MS);
    this.#isGraceOver = true;
    this.#node.server.close();
    for (const connection of connections) connection.closeIfIdle();
    // The timer does not keep the process alive after all connections are closed.
    await Promise.race([allClosed, delay(SHUTDOWN_MS - SHUTDOWN_GRACE_MS, undefined, { ref: false })]);
    this.#node.server.closeAllConnections();
    for (const connection of connections) connection.destroy();
    clearInterval(this.#useChecks);
  }

  async #respond(exchange: Exchange): Promise<void> {
    const response = await this.#route(exchange).catch(cause => {
      this.#context.onInternalError(cause, exchange);
      return errorResponse('internal');
    });
    if (response !== undefined) await exchange.connection.respond(exchange, response);
  }

  /** Selects by path and method. The fast path accepts only `POST /plants`. */
  async #route(exchange: Exchange): Promise<HttpResponse<string | Uint8Array> | undefined> {
    const { method, url, rawHeaders } = exchange.request;
    const { corsOrigins, documentation } = this.#context;
    const path = pathOf(url!);
    if (path === '/plants') {
      if (method === 'POST') return this.#createPlant(exchange);
      const preflight = method === 'OPTIONS' ? preflightResponse(corsOrigins, rawHeaders) : undefined;
      return preflight ?? errorResponse('methodNotAllowed', undefined, ['Allow', 'POST']);
    }
    const page = documentation?.get(path);
    if (page === undefined) return errorResponse('noSuchPath');
    if (method === 'GET' || method === 'HEAD') return page;
    return errorResponse('methodNotAllowed', undefined, ['Allow', 'GET, HEAD']);
  }

  /** @returns undefined if the client is gone or the request has a response already */
  async #createPlant(exchange: Exchange): Promise<HttpResponse | undefined> {
    if (this.#isGraceOver) return errorResponse('shuttingDown');
    const { createPlant } = this.#context;
    const { connection, request, serverResponse } = exchange;
    this.#fastPath.lastSender = undefined;
    // Ends when this plant is queued or rejected.
    using order = new DisposableStack();
    const previousQueued = connection.queued;
    const queued = new Promise<void>(resolve => order.defer(resolve));
    connection.queued = previousQueued.then(() => queued);
    const admitted = await createPlant.admit(request.rawHeaders, exchange);
    if ('status' in admitted) return admitted;
    const bytes = await readRequestBody(request, serverResponse, createPlant.bodyBytesMax);
    if (bytes === undefined) return undefined;
    if (bytes === 'tooLarge') return errorResponse('bodyTooLarge', undefined, admitted.fields);
    if (bytes === 'noRoom') return errorResponse('busy', TOO_MANY_LONG_BODIES, admitted.fields);
    Object.assign(exchange, { arrivedAt: performance.now(), bodyBytes: bytes.length, body: bytes });
    const isAwaited = (): boolean => !serverResponse.headersSent && !serverResponse.destroyed;
    const reading = await createPlant.read(bytes, isAwaited);
    if (reading === undefined) return undefined;
    // RFC 9112 section 9.3.2: only safe methods may be processed in parallel.
    await previousQueued;
    // The token may have been revoked while the body arrived or was read.
    const currentId = await createPlant.tokenId(admitted.tokenHash, exchange);
    if (typeof currentId !== 'number') return currentId;
    return createPlant.create({ ...admitted, trace: exchange.trace }, reading);
  }
}
