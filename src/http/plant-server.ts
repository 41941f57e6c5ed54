import type { IncomingMessage, Server } from 'node:http';
import { type AddressInfo, Server as NetServer } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { TOKEN_REFRESH_INTERVAL_MS } from '../auth/limits.ts';
import { SHUTDOWN_MS } from '../contract/limits.ts';
import { type Answer, type AnswerWatcher, errorAnswer } from './answer.ts';
import { Connections, type Exchange, isOver } from './connections.ts';
import type { Admission, CreatePlant } from './create-plant.ts';
import type { CrossOrigin } from './cross-origin.ts';
import type { Documentation } from './documentation.ts';
import { SHUTDOWN_GRACE_MS, TURN_FIRST_REQUESTS_MAX, TURN_FURTHER_REQUESTS_MAX } from './limits.ts';
import { type ListenAddress, listen } from './listen.ts';
import { createNodeServer, interceptConnections, pathOf } from './node-server.ts';
import { OrdinaryConnection, type OrdinaryService } from './ordinary-connection.ts';
import { OrdinaryHeads } from './ordinary-head.ts';
import { type BodyMemory, BodyRoom, bodyBytesOf, readBody } from './request-body.ts';
import { RequestTurns } from './request-turns.ts';

/** The HTTP listener of the service. */
export class PlantServer {
  readonly #server: Server;
  readonly #connections: Connections;
  readonly #fastPath: OrdinaryService;
  readonly #createPlant: CreatePlant;
  readonly #crossOrigin: CrossOrigin | undefined;
  readonly #documentation: Documentation | undefined;
  readonly #failed: (cause: unknown) => void;
  readonly #bodyMemory: BodyMemory = { reservedBytes: 0 };
  #shutDown = false;

  /**
   * @param createPlant the operation
   * @param failed is told of what should not happen; the client is answered 500
   * @param answered is told of each answer as it is written
   * @param crossOrigin which pages of other origins may use the service from a browser; undefined for none
   * @param documentation the page and the description; undefined where there are none
   */
  constructor(
    createPlant: CreatePlant,
    failed: (cause: unknown) => void,
    answered: AnswerWatcher,
    crossOrigin: CrossOrigin | undefined,
    documentation: Documentation | undefined,
  ) {
    this.#createPlant = createPlant;
    this.#crossOrigin = crossOrigin;
    this.#documentation = documentation;
    this.#failed = failed;
    const hasDocs = documentation !== undefined;
    this.#connections = new Connections(answered, crossOrigin, hasDocs);
    this.#server = createNodeServer(this.#connections, exchange => this.#take(exchange));
    this.#fastPath = {
      createPlant,
      heads: new OrdinaryHeads(crossOrigin !== undefined),
      firstTurns: new RequestTurns(TURN_FIRST_REQUESTS_MAX),
      furtherTurns: new RequestTurns(TURN_FURTHER_REQUESTS_MAX),
      open: new Set(),
      draining: false,
      hasDocs,
      serveHttp: interceptConnections(this.#server, socket => new OrdinaryConnection(socket, this.#fastPath)),
      refuseSlow: socket => this.#connections.refuseRest(socket, errorAnswer('tooSlow')),
      failed,
      answered,
    };
  }

  /** How many connections are open. */
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
    this.#connections.drain();
    this.#fastPath.draining = true;
    for (const connection of this.#fastPath.open) connection.drain();
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
      const preflight = this.#crossOrigin?.preflightAnswer(method, rawHeaders);
      return preflight ?? errorAnswer('methodNotAllowed', undefined, ['Allow', 'POST']);
    }
    const answerTo = this.#documentation?.get(path);
    if (answerTo === undefined) return errorAnswer('noSuchPath');
    if (method === 'GET' || method === 'HEAD') return answerTo(rawHeaders);
    return errorAnswer('methodNotAllowed', undefined, ['Allow', 'GET, HEAD']);
  }

  async #takePlant(exchange: Exchange): Promise<void> {
    let answer: Answer | undefined;
    try {
      answer = await this.#plantAnswer(exchange);
    } catch (cause) {
      this.#failed(cause);
      answer = errorAnswer('internal');
    }
    if (answer !== undefined) await this.#connections.answer(exchange, answer);
  }

  /** @returns undefined when nobody waits for an answer any more, or the request has had one */
  async #plantAnswer(exchange: Exchange): Promise<Answer | undefined> {
    if (this.#shutDown) return errorAnswer('shuttingDown');
    const { request, response } = exchange;
    const beganMs = performance.now();
    const admitted = await this.#createPlant.admit(request.rawHeaders);
    if ('status' in admitted) return admitted;
    // The client may have gone away, or been refused for its slowness, while its token was looked up.
    if (request.destroyed || isOver(exchange)) return undefined;
    using room = new BodyRoom(this.#bodyMemory);
    if (!room.reserve(bodyBytesOf(request) ?? 0)) return noRoomAnswer(admitted);
    if (expectsContinue(request)) response.writeContinue();
    const body = await readBody(request, this.#createPlant.bodyBytesMax, room);
    // A body that came too slowly, or broke off, was answered meanwhile and must not be stored.
    if (body === undefined || isOver(exchange)) return undefined;
    if (body === 'tooLarge') return errorAnswer('bodyTooLarge');
    if (body === 'noRoom') return noRoomAnswer(admitted);
    Object.assign(exchange, { arrivedAt: performance.now(), bodyBytes: body.length });
    if (exchange.arrivedAt - beganMs > TOKEN_REFRESH_INTERVAL_MS) {
      // The token may have been revoked while the body was on its way.
      const holder = await this.#createPlant.authenticate(request.rawHeaders);
      if (typeof holder !== 'number') return holder;
    }
    return this.#createPlant.create(admitted, body);
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
