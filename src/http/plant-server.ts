import type { IncomingMessage } from 'node:http';
import { type AddressInfo, Server as NetServer } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { TOKEN_REFRESH_INTERVAL_MS } from '../auth/limits.ts';
import { SHUTDOWN_MS } from '../contract/limits.ts';
import { type Answer, errorAnswer } from './answer.ts';
import type { Admission } from './create-plant.ts';
import { FIRST_TURN_MS, FURTHER_TURN_MS, SHUTDOWN_GRACE_MS } from './limits.ts';
import { type ListenAddress, listen } from './listen.ts';
import { type Exchange, isAnswered } from './node-connection.ts';
import { NodeServer, pathOf } from './node-server.ts';
import { type FastPath, OrdinaryConnection } from './ordinary-connection.ts';
import { OrdinaryHeads } from './ordinary-head.ts';
import type { Listener, PlantService } from './plant-service.ts';
import { type BodyMemory, BodyRoom, bodyBytesOf, readBody } from './request-body.ts';
import { Turns } from './turns.ts';

/** The HTTP listener of the service. */
export class PlantServer {
  readonly #listener: Listener;
  readonly #fastPath: FastPath;
  readonly #node: NodeServer;
  readonly #bodyMemory: BodyMemory = { reservedBytes: 0 };
  #shutDown = false;

  constructor(service: PlantService) {
    this.#listener = { ...service, isDraining: false };
    this.#node = new NodeServer(
      this.#listener,
      socket => new OrdinaryConnection(socket, this.#fastPath),
      exchange => this.#take(exchange),
    );
    this.#fastPath = {
      listener: this.#listener,
      heads: new OrdinaryHeads(service.crossOrigin !== undefined),
      firstTurns: new Turns(FIRST_TURN_MS),
      furtherTurns: new Turns(FURTHER_TURN_MS),
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
   * Connections are kept for a moment, though no request is seen on them: one may be on its way, and closing would
   * leave it unanswered. Each answer given from now on closes its connection; what begins after that moment is
   * answered 503.
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

  /** The only place where paths and methods are told apart; the fast path takes `POST /plants` alone. */
  #take(exchange: Exchange): void {
    const { method, url } = exchange.request;
    const path = pathOf(url!);
    if (path === '/plants' && method === 'POST') void this.#takePlant(exchange);
    else void exchange.connection.answer(exchange, this.#otherAnswer(path, exchange.request));
  }

  #otherAnswer(path: string, { method, rawHeaders }: IncomingMessage): Answer<string | Uint8Array> {
    if (path === '/plants') {
      const preflight = this.#listener.crossOrigin?.preflightAnswer(method, rawHeaders);
      return preflight ?? errorAnswer('methodNotAllowed', undefined, ['Allow', 'POST']);
    }
    const answerTo = this.#listener.documentation?.get(path);
    if (answerTo === undefined) return errorAnswer('noSuchPath');
    if (method === 'GET' || method === 'HEAD') return answerTo(rawHeaders);
    return errorAnswer('methodNotAllowed', undefined, ['Allow', 'GET, HEAD']);
  }

  async #takePlant(exchange: Exchange): Promise<void> {
    const answer = await this.#plantAnswer(exchange).catch(cause => {
      this.#listener.failed(cause);
      return errorAnswer('internal');
    });
    if (answer !== undefined) await exchange.connection.answer(exchange, answer);
  }

  /** @returns undefined when nobody waits for an answer any more, or the request has had one */
  async #plantAnswer(exchange: Exchange): Promise<Answer | undefined> {
    if (this.#shutDown) return errorAnswer('shuttingDown');
    const { createPlant } = this.#listener;
    const { request, response } = exchange;
    const beganMs = performance.now();
    const admitted = await createPlant.admit(request.rawHeaders);
    if ('status' in admitted) return admitted;
    // The client may have gone away, or been refused for its slowness, while its token was looked up.
    if (request.destroyed || isAnswered(exchange)) return undefined;
    using room = new BodyRoom(this.#bodyMemory);
    if (!room.reserve(bodyBytesOf(request))) return noRoomAnswer(admitted);
    if (expectsContinue(request)) response.writeContinue();
    const body = await readBody(request, response, createPlant.bodyBytesMax, room);
    // It came too slowly or broke off, which is answered by the connection.
    if (body === undefined) return undefined;
    if (body === 'tooLarge') return errorAnswer('bodyTooLarge', undefined, admitted.fields);
    if (body === 'noRoom') return noRoomAnswer(admitted);
    Object.assign(exchange, { arrivedAt: performance.now(), bodyBytes: body.length });
    const reading = await createPlant.read(body, () => !isAnswered(exchange));
    if (reading === undefined) return undefined;
    if (performance.now() - beganMs > TOKEN_REFRESH_INTERVAL_MS) {
      // The token may have been revoked while the body arrived or was read.
      const holder = await createPlant.authenticate(request.rawHeaders);
      if (typeof holder !== 'number') return holder;
    }
    return createPlant.create(admitted, reading);
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
