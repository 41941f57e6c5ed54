import { type AddressInfo, type BlockList, Server } from 'node:net';
import { type Clock, repeat, SYSTEM_CLOCK, sleep } from '../core/clock.ts';
import type { CreatePlant } from '../core/create-plant.ts';
import type { ResponseObserver } from '../core/extension-points.ts';
import { IterationBudget } from '../core/iteration-budget.ts';
import type { ReceivedRequest, RequestHeaders } from '../core/request.ts';
import { errorResponse, type HttpResponse } from '../core/response.ts';
import { Connection } from './connection.ts';
import { type AllowedOrigins, preflightResponse } from './cross-origin.ts';
import type { HandledRequest, HandlerResult } from './handled-request.ts';
import type { ReservedAddress } from './listen.ts';
import { LongBodyMemory } from './long-bodies.ts';
import { HeadersCache } from './parsed-headers.ts';
import { PlainCreates } from './plain-creates.ts';
import { type HelpFields, ResponseHeaders } from './response-headers.ts';
import { afterNextPoll } from './response-queue.ts';
import { rejectsPlants, type ServerContext, type ServerPhase } from './server-context.ts';
import { SHUTDOWN_MS } from './timeouts.ts';

/** During shutdown, idle connections stay open for this long. */
export const SHUTDOWN_GRACE_MS = 500;
/**
 * After the grace period, connections read requests for this long, and plants get 503. Then each
 * connection reads once more. The time is limited because a client may send without a pause.
 */
export const LAST_READS_MS = 1_000;
/** Interval at which all connections enforce their timeouts. */
export const TIMEOUT_POLL_INTERVAL_MS = 500;
/**
 * Time per tick for bodies, and for requests that are no plain creates. Their responses take about
 * as long again.
 */
const HANDLER_BUDGET_MS = 1;

/** The pages of a service, and the links to them. */
export interface Documentation {
  /** The responses to GET requests, by path. */
  readonly pages: ReadonlyMap<string, HttpResponse>;
  readonly helpFields: HelpFields;
}

export interface ServerSettings {
  readonly createPlant: CreatePlant;
  /** Origins whose pages may use the service; undefined: only the own origin. */
  readonly corsOrigins: AllowedOrigins | undefined;
  /** If it is undefined, the service has no pages, and its error responses have no links. */
  readonly documentation: Documentation | undefined;
  readonly observers: readonly ResponseObserver[];
  /** As in {@link HeadersCache}. */
  readonly varyingField: string;
  /** The proxies whose X-Forwarded-For names the client; undefined: none. */
  readonly trustedProxies: BlockList | undefined;
  /** Called with the cause of each 500 response. */
  readonly onInternalError: (cause: unknown, request: ReceivedRequest) => void;
}

/** The HTTP server for clients (RFC 9110, RFC 9112), on sockets of `node:net`. */
export class PlantServer {
  readonly #settings: ServerSettings;
  readonly #context: ServerContext;
  readonly #server: Server;
  readonly #connections = new Set<Connection>();
  /** The server, and the reserved address, whose connections arrived before the server existed. */
  readonly #listeners: Server[] = [];
  #timeoutTimer: Disposable | undefined;

  /** @param longBodies a test gives it, to see what is reserved */
  constructor(
    settings: ServerSettings,
    clock: Clock = SYSTEM_CLOCK,
    longBodies: LongBodyMemory = new LongBodyMemory(),
  ) {
    const { createPlant, corsOrigins, documentation, varyingField } = settings;
    this.#settings = settings;
    this.#context = {
      clock,
      phase: { kind: 'running' },
      headersCache: new HeadersCache(varyingField),
      plainCreates: new PlainCreates(createPlant, clock),
      handle: handled => this.#handle(handled),
      handlerBudget: new IterationBudget(HANDLER_BUDGET_MS, clock),
      longBodies,
      onInternalError: settings.onInternalError,
      responseHeaders: new ResponseHeaders(documentation?.helpFields, corsOrigins, clock),
      observers: settings.observers,
      trustedProxies: settings.trustedProxies,
    };
    // A client may end its side after its last request, and still wait for the response.
    this.#server = new Server({ allowHalfOpen: true, noDelay: true }, socket => {
      const connection = new Connection(socket, this.#context);
      this.#connections.add(connection);
      socket.on('close', () => this.#connections.delete(connection));
    });
  }

  get openConnections(): number {
    return this.#connections.size;
  }

  async listen(reserved: ReservedAddress): Promise<AddressInfo> {
    this.#listeners.push(reserved, this.#server);
    const address = await reserved.handOver(this.#server);
    this.#timeoutTimer = repeat(this.#context.clock, () => this.#enforceTimeouts(), TIMEOUT_POLL_INTERVAL_MS);
    return address;
  }

  /**
   * Stops accepting connections and responds to all accepted requests, within {@link SHUTDOWN_MS}.
   * The last response on each connection closes it. Idle connections stay open for
   * {@link SHUTDOWN_GRACE_MS}, since a request may be in flight. Later plants get a 503
   * response. After {@link LAST_READS_MS} more, each connection reads once more, and ends.
   */
  async close(): Promise<void> {
    this.#context.phase = { kind: 'draining' };
    const allClosed = Promise.all(
      this.#listeners.map(listener => new Promise(resolve => listener.close(resolve))),
    );
    await sleep(this.#context.clock, SHUTDOWN_GRACE_MS);
    // Bytes that the kernel has received by now are in time.
    await new Promise<void>(resolve => afterNextPoll(this.#context.clock, resolve));
    this.#enterPhase({ kind: 'rejecting' });
    const closed = new AbortController();
    void allClosed.then(() => closed.abort());
    await sleep(this.#context.clock, LAST_READS_MS, closed.signal);
    this.#enterPhase({ kind: 'closing', sinceMs: this.#context.clock.now() });
    await sleep(this.#context.clock, SHUTDOWN_MS - SHUTDOWN_GRACE_MS - LAST_READS_MS, closed.signal);
    for (const connection of this.#connections) connection.destroy();
    this.#timeoutTimer?.[Symbol.dispose]();
  }

  #enforceTimeouts(): void {
    const now = this.#context.clock.now();
    for (const connection of this.#connections) connection.enforceTimeouts(now);
  }

  #enterPhase(phase: ServerPhase): void {
    this.#context.phase = phase;
    for (const connection of this.#connections) connection.endIfIdle();
  }

  async #handle(handled: HandledRequest): Promise<HandlerResult> {
    const { headers } = handled;
    if (headers.path !== '/plants' || headers.method !== 'POST')
      return { kind: 'ready', response: this.#otherResponse(headers) };
    if (rejectsPlants(this.#context.phase)) return { kind: 'ready', response: errorResponse('shuttingDown') };
    return await this.#settings.createPlant.run(handled);
  }

  /** @returns the response to a request that is no create */
  #otherResponse({ path, method, fields }: RequestHeaders): HttpResponse {
    const { corsOrigins, documentation } = this.#settings;
    if (path === '/plants') {
      const preflight = method === 'OPTIONS' ? preflightResponse(corsOrigins, fields) : undefined;
      return preflight ?? errorResponse('methodNotAllowed', undefined, ['Allow', 'POST']);
    }
    // A target in authority form has no path.
    if (method === 'CONNECT') return errorResponse('methodNotAllowed', undefined, ['Allow', 'POST']);
    const page = documentation?.pages.get(path);
    if (page === undefined) return errorResponse('noSuchPath');
    if (method === 'GET' || method === 'HEAD') return page;
    return errorResponse('methodNotAllowed', undefined, ['Allow', 'GET, HEAD']);
  }
}
