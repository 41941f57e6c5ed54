import { CONNECTIONS_MAX } from './limits.ts';
import type { Connect } from './node-sockets.ts';
import { PipelinedConnection, PipelinedRequest } from './pipelined-connection.ts';
import { NoAnswer, type Post, type Transport, type TransportSettings } from './transport.ts';

/**
 * Sends many requests on the way on each of a few connections. Node's fetch takes many times as long for a plant as this
 * does and makes the service take twice as long, for each of its requests is a write and a read of its own.
 *
 * Where connections do not last, as behind some gateways, each plant gets one of its own.
 */
export class PipelinedTransport implements Transport {
  readonly #connect: Connect;
  readonly #settings: TransportSettings;
  readonly #head: string;
  readonly #connections = new Set<PipelinedConnection>();
  /** Requests for which no connection has room, in the order in which they are sent. */
  readonly #waiting: PipelinedRequest[] = [];
  #isClosed = false;

  constructor(settings: TransportSettings, connect: Connect) {
    this.#connect = connect;
    this.#settings = settings;
    const { url, token } = settings;
    this.#head =
      `POST ${url.pathname} HTTP/1.1\r\nHost: ${url.host}\r\nAuthorization: Bearer ${token}\r\n` +
      'Content-Type: application/json\r\nContent-Length: ';
  }

  post(body: string): Post {
    const request = new PipelinedRequest(`${this.#head}${utf8Length(body)}\r\n\r\n${body}`);
    if (this.#isClosed) request.abandon(new NoAnswer('ECONNABORTED'));
    else this.#send(request);
    return request;
  }

  close(): void {
    this.#isClosed = true;
    for (const request of this.#waiting.splice(0)) request.abandon(new NoAnswer('ECONNABORTED'));
    for (const connection of this.#connections) connection.close();
  }

  #send(request: PipelinedRequest): void {
    const connection = this.#withRoom();
    if (connection === undefined) this.#waiting.push(request);
    else connection.send(request);
  }

  #withRoom(): PipelinedConnection | undefined {
    for (const connection of this.#connections) {
      if (connection.hasRoom) return connection;
    }
    return this.#connections.size < CONNECTIONS_MAX ? this.#open() : undefined;
  }

  #open(): PipelinedConnection {
    const connection = new PipelinedConnection(this.#connect, this.#settings, {
      onRoom: () => this.#sendWaiting(),
      onClose: unsent => {
        this.#connections.delete(connection);
        this.#waiting.unshift(...unsent);
        this.#sendWaiting();
      },
    });
    this.#connections.add(connection);
    return connection;
  }

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
  }
}

const encoder = new TextEncoder();
const ASCII = /^[\0-\x7f]*$/;

/** In bytes. */
function utf8Length(text: string): number {
  return ASCII.test(text) ? text.length : encoder.encode(text).length;
}
