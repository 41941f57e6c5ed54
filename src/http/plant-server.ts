import { once } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { type AddressInfo, Server as NetServer } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import fastify, { type FastifyInstance } from 'fastify';
import { SHUTDOWN_GRACE_MS, SHUTDOWN_MS, TOKEN_REFRESH_INTERVAL_MS } from '../contract/limits.ts';
import { type Answer, type AnswerWatcher, errorAnswer } from './answer.ts';
import { Connections } from './connections.ts';
import type { Admission, CreatePlant } from './create-plant.ts';
import type { CrossOrigin } from './cross-origin.ts';
import type { Documentation } from './documentation.ts';
import { createNodeServer, interceptConnections } from './node-server.ts';
import { OrdinaryConnections } from './ordinary-connections.ts';
import { OrdinaryHeads } from './ordinary-head.ts';
import { BodyMemory, BodyRoom, bodyBytesOf, readBody } from './request-body.ts';

/** The address to listen at; port 0 takes any free one. */
export interface ListenAddress {
  host: string;
  port: number;
}

/** What the listener serves besides the operation, and to whom. */
export interface PlantServerOptions {
  /** Which pages of other origins may use the service from a browser; undefined for none. */
  crossOrigin: CrossOrigin | undefined;
  /** The page and the description; undefined where there are none. */
  documentation: Documentation | undefined;
}

/** The HTTP listener of the service. */
export class PlantServer {
  readonly #app: FastifyInstance;
  readonly #connections: Connections;
  readonly #ordinary: OrdinaryConnections;
  readonly #createPlant: CreatePlant;
  readonly #crossOrigin: CrossOrigin | undefined;
  readonly #documentation: Documentation | undefined;
  readonly #failed: (cause: unknown) => void;
  readonly #bodyMemory = new BodyMemory();
  #shutDown = false;

  /**
   * @param createPlant the operation
   * @param failed is told of what should not happen; the client is answered 500
   * @param answered is told of each answer as it is written
   */
  constructor(
    createPlant: CreatePlant,
    failed: (cause: unknown) => void,
    answered: AnswerWatcher,
    { crossOrigin, documentation }: PlantServerOptions,
  ) {
    this.#createPlant = createPlant;
    this.#crossOrigin = crossOrigin;
    this.#documentation = documentation;
    this.#failed = failed;
    const hasDocs = documentation !== undefined;
    this.#connections = new Connections(answered, { crossOrigin, hasDocs });
    this.#app = fastify({
      serverFactory: route =>
        createNodeServer(this.#connections, (request, response) => {
          // A target that is taken over below goes straight to the operation, past a router that gives it nothing.
          if (request.method === 'POST' && request.url === '/plants')
            void this.#handlePlant(request, response);
          else route(request, response);
        }),
      clientErrorHandler: (error, socket) => this.#connections.failed(error, socket),
      frameworkErrors: (_error, request, reply) => {
        reply.hijack();
        void this.#connections.answer(request.raw, reply.raw, errorAnswer('noSuchPath'));
      },
    });
    this.#addRoutes();
    this.#ordinary = new OrdinaryConnections(createPlant, {
      heads: new OrdinaryHeads(crossOrigin !== undefined),
      hasDocs,
      serveHttp: interceptConnections(this.#server, socket => this.#ordinary.take(socket)),
      refuseSlow: socket => this.#connections.refuseRest(socket, errorAnswer('tooSlow')),
      failed,
      answered,
    });
  }

  /** How many connections are open. */
  openConnections(): Promise<number> {
    return new Promise(resolve => this.#server.getConnections((_error, count) => resolve(count)));
  }

  /** @throws when the address cannot be had, with the code of the system (`EADDRINUSE`, `EACCES`, …) */
  async listen(address: ListenAddress): Promise<AddressInfo> {
    await this.#app.ready();
    // Not Fastify's own listen: for `localhost` that makes a second server, which would know nothing of draining.
    this.#server.listen(address);
    await once(this.#server, 'listening');
    return this.#server.address() as AddressInfo;
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
    this.#ordinary.drain();
    const allClosed = new Promise(resolve => NetServer.prototype.close.call(this.#server, resolve));
    await wait(SHUTDOWN_GRACE_MS);
    this.#shutDown = true;
    this.#server.close();
    this.#ordinary.closeIdle();
    const deadline = new AbortController();
    await Promise.race([
      allClosed,
      wait(SHUTDOWN_MS - SHUTDOWN_GRACE_MS, undefined, { signal: deadline.signal }),
    ]);
    deadline.abort();
    this.#server.closeAllConnections();
    this.#ordinary.closeAll();
    await this.#app.close();
  }

  get #server(): Server {
    return this.#app.server as Server;
  }

  #addRoutes(): void {
    this.#app.addHook('onRequest', (request, reply, done) => {
      if (!request.is404) return done();
      reply.hijack();
      void this.#connections.answer(request.raw, reply.raw, this.#answerWithoutRoute(request.raw));
    });

    // Taken over before Fastify parses a body: ours must not be read before the credential, nor parsed inexactly.
    this.#app.route({
      method: 'POST',
      url: '/plants',
      onRequest: (request, reply) => {
        reply.hijack();
        void this.#handlePlant(request.raw, reply.raw);
      },
      handler: () => {
        throw new Error('the request was taken over before');
      },
    });

    for (const [path, answerTo] of this.#documentation?.answers ?? []) {
      this.#app.get(path, (request, reply) => {
        reply.hijack();
        void this.#connections.answer(request.raw, reply.raw, answerTo(request.raw.rawHeaders));
      });
    }
  }

  #answerWithoutRoute({ method, url, rawHeaders }: IncomingMessage): Answer {
    const path = pathOf(url!);
    if (this.#documentation?.answers.has(path))
      return errorAnswer('methodNotAllowed', undefined, ['Allow', 'GET, HEAD']);
    if (path !== '/plants') return errorAnswer('noSuchPath');
    const preflight = this.#crossOrigin?.preflightAnswer(method, rawHeaders);
    return preflight ?? errorAnswer('methodNotAllowed', undefined, ['Allow', 'POST']);
  }

  async #handlePlant(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const answer = await this.#plantAnswer(request, response);
      if (answer !== undefined) await this.#connections.answer(request, response, answer);
    } catch (cause) {
      this.#failed(cause);
      await this.#connections.answer(request, response, errorAnswer('internal'));
    }
  }

  /** @returns undefined when nobody waits for an answer any more, or the request has had one */
  async #plantAnswer(request: IncomingMessage, response: ServerResponse): Promise<Answer | undefined> {
    if (this.#shutDown) return errorAnswer('shuttingDown');
    const beganMs = performance.now();
    const admitted = await this.#createPlant.admit(request.rawHeaders);
    if ('status' in admitted) return admitted;
    // The client may have gone away, or been refused for its slowness, while its token was looked for.
    if (request.destroyed || this.#connections.isOver(response)) return undefined;
    using room = new BodyRoom(this.#bodyMemory);
    if (!room.reserve(bodyBytesOf(request) ?? 0)) return noRoomAnswer(admitted);
    if (expectsContinue(request)) response.writeContinue();
    const body = await readBody(request, this.#createPlant.bodyBytesMax, room);
    // A body that came too slowly, or broke off, was answered meanwhile and must not be stored.
    if (body === undefined || this.#connections.isOver(response)) return undefined;
    if (body === 'tooLarge') return errorAnswer('bodyTooLarge');
    if (body === 'noRoom') return noRoomAnswer(admitted);
    this.#connections.bodyArrived(response, body.length);
    if (performance.now() - beganMs > TOKEN_REFRESH_INTERVAL_MS) {
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

/** The path of a target in origin form, decoded as the router does it; what it cannot decode it has no route for. */
function pathOf(target: string): string {
  try {
    return decodeURIComponent(target.replace(/\?.*/s, ''));
  } catch {
    return target;
  }
}

/** RFC 9110 section 10.1.1: the expectation of an HTTP/1.0 client is ignored. */
function expectsContinue({ headers, httpVersion }: IncomingMessage): boolean {
  return httpVersion !== '1.0' && headers.expect?.toLowerCase() === '100-continue';
}
