import type { ServiceAddress } from '../service-options.ts';
import { PIPELINES } from './limits.ts';
import { PipelinedConnection, type PlantRequest } from './pipelined-connection.ts';
import type { Answer } from './plant-answer.ts';
import { type PlantRequests, plantsPath } from './plant-requests.ts';

/**
 * Sends plants without TLS, many on the way on each of a few connections. A client library takes three times as long
 * for a plant as this does and makes the service take twice as long, for each of its requests is a write and a read of
 * its own; and undici's own pipelining now and then leaves a request unsent until its time is over.
 *
 * Where connections do not last, as behind some gateways, each plant gets one of its own.
 */
export class PipelinedRequests implements PlantRequests {
  readonly #address: ServiceAddress;
  readonly #head: string;
  readonly #requestsMax: number;
  readonly #connections = new Set<PipelinedConnection>();
  #isClosed = false;

  /** @param inFlightMax how many the caller sends at most before an answer has come */
  constructor(address: ServiceAddress, inFlightMax: number) {
    const { url, token } = address;
    this.#address = address;
    this.#requestsMax = Math.ceil(inFlightMax / PIPELINES);
    this.#head =
      `POST ${plantsPath(url)} HTTP/1.1\r\nHost: ${url.host}\r\nAuthorization: Bearer ${token}\r\n` +
      'Content-Type: application/json\r\nContent-Length: ';
  }

  post(body: string, onAnswer: (answer: Answer) => void): void {
    this.#send({ text: `${this.#head}${Buffer.byteLength(body)}\r\n\r\n${body}`, onAnswer });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const connection of this.#connections) connection.close();
  }

  #send(request: PlantRequest): void {
    for (const connection of this.#connections) {
      if (connection.hasRoom) {
        connection.send(request);
        return;
      }
    }
    this.#open().send(request);
  }

  #open(): PipelinedConnection {
    const { hostname, port } = this.#address.url;
    const peer = { host: hostname.replace(/^\[|\]$/g, ''), port: port === '' ? 80 : Number(port) };
    const connection = new PipelinedConnection(peer, this.#requestsMax, unsent => {
      this.#connections.delete(connection);
      for (const request of unsent) {
        if (this.#isClosed) request.onAnswer({ kind: 'no answer', cause: 'ECONNRESET' });
        else this.#send(request);
      }
    });
    this.#connections.add(connection);
    return connection;
  }
}
