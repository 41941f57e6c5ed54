import type { Socket } from 'node:net';
import { CONNECTIONS_MAX } from '../limits.ts';
import { NoResponse, type Post, type Transport, type TransportSettings } from '../transport.ts';
import { PipelinedConnection, PipelinedRequest } from './pipelined-connection.ts';

/**
 * Gets Node's sockets without an import, since browsers load this file too.
 *
 * Other runtimes use `fetch`, even if they have `node:net`: some forbid a connection that outlives
 * the request that opened it. A runtime names itself in `navigator.userAgent`; Node does since 21.
 *
 * @returns a function that connects to the host of the address; undefined outside Node, and before
 *   Node 20.16, which has no `process.getBuiltinModule`
 */
function nodeConnect({ protocol, hostname, port }: URL): (() => Socket) | undefined {
  const { navigator, process } = globalThis as Partial<typeof globalThis>;
  if (navigator !== undefined && navigator.userAgent?.startsWith('Node.js/') !== true) return undefined;
  if (process?.getBuiltinModule === undefined) return undefined;
  const host = hostname.replace(/^\[|\]$/g, '');
  if (protocol === 'http:') {
    const net = process.getBuiltinModule('node:net');
    return () => net.connect({ host, port: Number(port || 80) }).setNoDelay(true);
  }
  const tls = process.getBuiltinModule('node:tls');
  // A server with several certificates chooses by this name (RFC 6066 section 3). IP addresses are
  // not allowed.
  const name = /^(?:\[.*\]|[0-9.]+)$/.test(hostname) ? {} : { servername: hostname };
  // Without this list a server may choose HTTP/2 (RFC 7301).
  const target = { host, port: Number(port || 443), ...name, ALPNProtocols: ['http/1.1'] };
  return () => tls.connect(target).setNoDelay(true);
}

/** @returns the transport with pipelined connections; undefined outside Node */
export function openNodeTransport(settings: TransportSettings): Transport | undefined {
  const connect = nodeConnect(settings.url);
  return connect === undefined ? undefined : new PipelinedTransport(settings, connect);
}

/**
 * Pipelines requests on a few connections. Node's `fetch` is many times slower per plant, and
 * doubles the work of the service: it writes and reads each request separately.
 *
 * Behind gateways that close each connection, every plant gets a new one. A queued request fails
 * when no connection has received a response for `responseTimeoutMs`.
 */
class PipelinedTransport implements Transport {
  readonly #connect: () => Socket;
  readonly #responseTimeoutMs: number;
  readonly #headers: string;
  readonly #connections = new Set<PipelinedConnection>();
  /** Requests for which no connection has room, in sending order. */
  readonly #queue: PipelinedRequest[] = [];
  /** Runs while requests are queued. It starts again at each response. */
  #queueTimer: ReturnType<typeof setTimeout> | undefined;
  #isClosed = false;

  constructor({ url, token, responseTimeoutMs }: TransportSettings, connect: () => Socket) {
    this.#connect = connect;
    this.#responseTimeoutMs = responseTimeoutMs;
    this.#headers =
      `POST ${url.pathname} HTTP/1.1\r\nHost: ${url.host}\r\nAuthorization: Bearer ${token}\r\n` +
      'Content-Type: application/json\r\nContent-Length: ';
  }

  post(body: string): Post {
    const request = new PipelinedRequest(`${this.#headers}${Buffer.byteLength(body)}\r\n\r\n${body}`);
    if (this.#isClosed) request.abandon(new NoResponse('ECONNABORTED'));
    else {
      this.#queue.push(request);
      this.#sendQueued();
    }
    return request;
  }

  close(): void {
    this.#isClosed = true;
    this.#failQueued('ECONNABORTED');
    for (const connection of this.#connections) connection.close();
  }

  #failQueued(code: string): void {
    this.#stopQueueTimer();
    for (const request of this.#queue.splice(0)) request.abandon(new NoResponse(code));
  }

  #stopQueueTimer(): void {
    clearTimeout(this.#queueTimer);
    this.#queueTimer = undefined;
  }

  #connectionWithRoom(): PipelinedConnection | undefined {
    for (const connection of this.#connections) {
      if (connection.hasRoom) return connection;
    }
    return this.#connections.size < CONNECTIONS_MAX ? this.#open() : undefined;
  }

  #open(): PipelinedConnection {
    const onResponses = (): void => {
      this.#stopQueueTimer();
      this.#sendQueued();
    };
    const onClose = (unsent: PipelinedRequest[]): void => {
      this.#connections.delete(connection);
      this.#queue.unshift(...unsent);
      // Their timeout starts at the response that closed the connection.
      if (unsent.length > 0) this.#stopQueueTimer();
      this.#sendQueued();
    };
    const connection = new PipelinedConnection(
      this.#connect(),
      this.#responseTimeoutMs,
      onResponses,
      onClose,
    );
    this.#connections.add(connection);
    return connection;
  }

  /** Sends requests while there is room, and starts the timer for the rest. */
  #sendQueued(): void {
    let sent = 0;
    for (; sent < this.#queue.length; sent++) {
      const request = this.#queue[sent]!;
      if (request.isAbandoned) continue;
      const connection = this.#connectionWithRoom();
      if (connection === undefined) break;
      connection.send(request);
    }
    if (sent > 0) this.#queue.splice(0, sent);
    if (this.#queue.length === 0) this.#stopQueueTimer();
    else this.#queueTimer ??= setTimeout(() => this.#failQueued('ETIMEDOUT'), this.#responseTimeoutMs);
  }
}
