import type { Socket } from 'node:net';
import { CONNECTIONS_MAX } from '../limits.ts';
import { NoResponse, type Post, type Transport, type TransportSettings } from '../transport.ts';
import { PipelinedConnection, PipelinedRequest } from './pipelined-connection.ts';

/**
 * Finds the sockets of Node without importing them, which would keep this file out of browsers.
 *
 * Other runtimes that have `node:net` too are left to their `fetch`: some forbid a connection that outlives the request
 * in which it was opened. Each names itself in `navigator.userAgent`; Node does since 21.
 *
 * @returns what connects to the host of a `http:` or `https:` address; undefined elsewhere, and in a Node before 20.16,
 *   which does not hand out its modules
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
  // A server that has several names chooses its certificate by this one (RFC 6066 section 3, which leaves addresses out).
  const name = /^(?:\[.*\]|[0-9.]+)$/.test(hostname) ? {} : { servername: hostname };
  // Where HTTP/1.1 is not asked for, a server may choose HTTP/2 (RFC 7301).
  const target = { host, port: Number(port || 443), ...name, ALPNProtocols: ['http/1.1'] };
  return () => tls.connect(target).setNoDelay(true);
}

/** @returns the transport over connections of our own; undefined where there is no Node */
export function openNodeTransport(settings: TransportSettings): Transport | undefined {
  const connect = nodeConnect(settings.url);
  return connect === undefined ? undefined : new PipelinedTransport(settings, connect);
}

/**
 * Sends many requests on the way on each of a few connections. Node's fetch takes many times as long for a plant as this
 * does and makes the service take twice as long, for each of its requests is a write and a read of its own.
 *
 * Where connections do not last, as behind some gateways, each plant gets one of its own. What waits for room on a connection
 * fails when no connection has brought an answer for as long as one may take.
 */
class PipelinedTransport implements Transport {
  readonly #connect: () => Socket;
  readonly #responseTimeoutMs: number;
  readonly #headers: string;
  readonly #connections = new Set<PipelinedConnection>();
  /** Requests for which no connection has room, in the order in which they are sent. */
  readonly #waiting: PipelinedRequest[] = [];
  /** Runs while requests wait, from the last answer on. */
  #waitTimer: ReturnType<typeof setTimeout> | undefined;
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
      this.#waiting.push(request);
      this.#sendWaiting();
    }
    return request;
  }

  close(): void {
    this.#isClosed = true;
    this.#failWaiting('ECONNABORTED');
    for (const connection of this.#connections) connection.close();
  }

  #failWaiting(code: string): void {
    this.#stopWaitTimer();
    for (const request of this.#waiting.splice(0)) request.abandon(new NoResponse(code));
  }

  #stopWaitTimer(): void {
    clearTimeout(this.#waitTimer);
    this.#waitTimer = undefined;
  }

  #withRoom(): PipelinedConnection | undefined {
    for (const connection of this.#connections) {
      if (connection.hasRoom) return connection;
    }
    return this.#connections.size < CONNECTIONS_MAX ? this.#open() : undefined;
  }

  #open(): PipelinedConnection {
    const onResponses = (): void => {
      this.#stopWaitTimer();
      this.#sendWaiting();
    };
    const onClose = (unsent: PipelinedRequest[]): void => {
      this.#connections.delete(connection);
      this.#waiting.unshift(...unsent);
      // They wait since the response that closed it.
      if (unsent.length > 0) this.#stopWaitTimer();
      this.#sendWaiting();
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

  /** Sends what there is room for, and gives the rest its time. */
  #sendWaiting(): void {
    let sent = 0;
    for (; sent < this.#waiting.length; sent++) {
      const request = this.#waiting[sent]!;
      if (request.isAbandoned) continue;
      const connection = this.#withRoom();
      if (connection === undefined) break;
      connection.send(request);
    }
    if (sent > 0) this.#waiting.splice(0, sent);
    if (this.#waiting.length === 0) this.#stopWaitTimer();
    else this.#waitTimer ??= setTimeout(() => this.#failWaiting('ETIMEDOUT'), this.#responseTimeoutMs);
  }
}
