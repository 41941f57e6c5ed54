import type { IncomingMessage, Server } from 'node:http';
import { type AddressInfo, Server as NetServer } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { TOKEN_REFRESH_INTERVAL_MS } from '../auth/limits.ts';
import { SHUTDOWN_MS } from '../contract/limits.ts';
import { type Answer, errorAnswer } from './answer.ts';
import { Connections, type Exchange, isOver } from './connections.ts';
import type { Admission } from './create-plant.ts';
import { SHUTDOWN_GRACE_MS, TURN_FIRST_REQUESTS_MAX, TURN_FURTHER_REQUESTS_MAX } from './limits.ts';
import { type ListenAddress, listen } from './listen.ts';
import { createNodeServer, interceptConnections, pathOf } from './node-server.ts';
import { type FastPath, OrdinaryConnection } from './ordinary-connection.ts';
import { OrdinaryHeads } from './ordinary-head.ts';
import type { PlantService } from './plant-service.ts';
import { type BodyMemory, BodyRoom, bodyBytesOf, readBody } from './request-body.ts';
import { RequestTurns } from './request-turns.ts';

/** The HTTP listener of the service. */
export class PlantServer {
  readonly #server: Server;
  readonly #connections: Connections;
  readonly #fastPath: FastPath;
  readonly #service: PlantService;
  readonly #bodyMemory: BodyMemory = { reservedBytes: 0 };
  #shutDown = false;

  constructor(service: PlantService) {
    this.#service = service;
    this.#connections = new Connections(service);
    this.#server = createNodeServer(this.#connections, exchange => this.#take(exchange));
    this.#fastPath = {
      ...service,
      heads: new OrdinaryHeads(service.crossOrigin !== undefined),
      firstTurns: new RequestTurns(TURN_FIRST_REQUESTS_MAX),
      furtherTurns: new RequestTurns(TURN_FURTHER_REQUESTS_MAX),
      open: new Set(),
      connections: this.#connections,
      serveHttp: interceptConnections(this.#server, socket => new OrdinaryConnection(socket, this.#fastPath)),
    };
  }

  openConnections(): Promise<number> {
    return new Promise(resolve => this.#server.getConnections((_error, count) => resolve(count)));
  }

  /** @throws {ListenFailed} when the address cannot be had */
  listen(address: ListenAddress): Promise<AddressInfo> {
    return listen(this.#server, address);
  }

  /**
   * Stops taking connections, answers what was taken, and cuts what is left when the time for it is over.
   *
   * Connections are kept for a moment, though no request is seen on them: one may be on its way, and closing would
   * leave it unanswered. Each answer given from now on closes its connection; what begins after that moment is
   * answered 503.
   */
  async close(): Promise<void> {
    this.#connections.draining = true;
    // A request that has begun to arrive is the HTTP server's to wait for.
    for (const connection of this.#fastPath.open) connection.goOn();
    const allClosed = new Promise(resolve => NetServer.prototype.close.call(this.#server, resolve));
    await wait(SHUTDOWN_GRACE_MS);
    this.#shutDown = true;
    this.#server.close();
    for (const connection of this.#fastPath.open) connection.closeIfIdle();
    const deadline = new AbortController();
    await Promise.race([
      allClosed,
      wait(SHUTDOWN_MS - SHUTDOWN_GRACE_MS, undefined, { signal: deadline.signal }),
    ]);
    deadline.abort();
    this.#server.closeAllConnections();
    for (const connection of this.#fastPath.open) connection.close();
  }

  /** The only place where paths and methods are told apart; the fast path takes `POST /plants` alone. */
  #take(exchange: Exchange): void {
    const { method, url } = exchange.request;
    const path = pathOf(url!);
    if (path === '/plants' && method === 'POST') void this.#takePlant(exchange);
    else void this.#connections.answer(exchange, this.#otherAnswer(path, exchange.request));
  }

  #otherAnswer(path: string, { method, rawHeaders }: IncomingMessage): Answer<string | Uint8Array> {
    if (path === '/plants') {
      const preflight = this.#service.crossOrigin?.preflightAnswer(method, rawHeaders);
      return preflight ?? errorAnswer('methodNotAllowed', undefined, ['Allow', 'POST']);
    }
    const answerTo = this.#service.documentation?.get(path);
    if (answerTo === undefined) return errorAnswer('noSuchPath');
    if (method === 'GET' || method === 'HEAD') return answerTo(rawHeaders);
    return errorAnswer('methodNotAllowed', undefined, ['Allow', 'GET, HEAD']);
  }

  async #takePlant(exchange: Exchange): Promise<void> {
    const answer = await this.#plantAnswer(exchange).catch(cause => {
      this.#service.failed(cause);
      return errorAnswer('internal');
    });
    if (answer !== undefined) await this.#connections.answer(exchange, answer);
  }

  /** @returns undefined when nobody waits for an answer any more, or the request has had one */
  async #plantAnswer(exchange: Exchange): Promise<Answer | undefined> {
    if (this.#shutDown) return errorAnswer('shuttingDown');
    const { createPlant } = this.#service;
    const { request, response } = exchange;
    const beganMs = performance.now();
    const admitted = await createPlant.admit(request.rawHeaders);
    if ('status' in admitted) return admitted;
    // The client may have gone away, or been refused for its slowness, while its token was looked up.
    if (request.destroyed || isOver(exchange)) return undefined;
    using room = new BodyRoom(this.#bodyMemory);
    if (!room.reserve(bodyBytesOf(request))) return noRoomAnswer(admitted);
    if (expectsContinue(request)) response.writeContinue();
    const body = await readBody(request, createPlant.bodyBytesMax, room);
    // A body that came too slowly, or broke off, was answered meanwhile and must not be stored.
    if (body === undefined || isOver(exchange)) return undefined;
    if (body === 'tooLarge') return errorAnswer('bodyTooLarge');
    if (body === 'noRoom') return noRoomAnswer(admitted);
    Object.assign(exchange, { arrivedAt: performance.now(), bodyBytes: body.length });
    if (exchange.arrivedAt - beganMs > TOKEN_REFRESH_INTERVAL_MS) {
      // The token may have been revoked while the body was on its way.
      const holder = await createPlant.authenticate(request.rawHeaders);
      if (typeof holder !== 'number') return holder;
    }
    return createPlant.create(admitted, body);
  }
}

function noRoomAnswer({ fields }: Admission): Answer {
  const message = 'more long bodies are arriving than the service can take; send this plant again shortly';
  return errorAnswer('busy', message, fields);
}

/** RFC 9110 section 10.1.1: the expectation of an HTTP/1.0 client is ignored. */
function expectsContinue({ headers, httpVersion }: IncomingMessage): boolean {
  return httpVersion !== '1.0' && headers.expect?.toLowerCase() === '100-continue';
}
