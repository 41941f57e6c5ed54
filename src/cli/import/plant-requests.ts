import type { Socket } from 'node:net';
import { buildConnector, Client } from 'undici';
import type { ServiceAddress } from '../service-options.ts';
import { ANSWER_WAIT_MS, CONNECTIONS_MAX } from './limits.ts';
import { type Answer, AnswerReader } from './plant-answer.ts';

/** Sends plants over a few connections, several on the way on each (RFC 9112 section 9.3.2, pipelining). */
export class PlantRequests {
  readonly #connections: Connection[];

  /** @param inFlightMax how many the caller sends at most before an answer has come */
  constructor(address: ServiceAddress, inFlightMax: number) {
    const count = Math.min(CONNECTIONS_MAX, inFlightMax);
    const inFlightEach = Math.ceil(inFlightMax / count);
    this.#connections = Array.from({ length: count }, () => new Connection(address, inFlightEach));
  }

  /** @param onAnswer is called once, with whatever came of it */
  post(body: string, onAnswer: (answer: Answer) => void): void {
    // undici's own Pool leaves requests waiting though one of its connections has room for them.
    let idlest = this.#connections[0]!;
    for (const connection of this.#connections)
      if (connection.inFlight < idlest.inFlight) idlest = connection;
    idlest.post(body, onAnswer);
  }

  /** Cuts the connections; what was not answered is answered with `no answer`. */
  async close(): Promise<void> {
    await Promise.all(this.#connections.map(connection => connection.close()));
  }
}

/** One connection, made anew whenever it is cut. */
class Connection {
  /** Requests that are not answered yet. */
  inFlight = 0;
  readonly #client: Client;
  readonly #path: string;
  readonly #headers: string[];
  #socket: Socket | undefined;
  #isCorked = false;

  constructor({ url, token }: ServiceAddress, inFlightMax: number) {
    const connect = buildConnector({ timeout: ANSWER_WAIT_MS, allowH2: false });
    this.#client = new Client(url.origin, {
      connect: (options, callback) => {
        connect(options, (...result) => {
          if (result[0] === null) this.#socket = result[1];
          callback(...result);
        });
      },
      pipelining: inFlightMax,
      headersTimeout: ANSWER_WAIT_MS,
      bodyTimeout: ANSWER_WAIT_MS,
    });
    this.#path = `${url.pathname.replace(/\/$/, '')}/plants`;
    this.#headers = ['authorization', `Bearer ${token}`, 'content-type', 'application/json'];
  }

  post(body: string, onAnswer: (answer: Answer) => void): void {
    this.inFlight++;
    this.#cork();
    this.#client.dispatch(
      // A plant may be sent again at any time, so a POST need not wait for the answers before it.
      { method: 'POST', path: this.#path, headers: this.#headers, body, idempotent: true, blocking: false },
      new AnswerReader(answer => {
        this.inFlight--;
        onAnswer(answer);
      }),
    );
  }

  async close(): Promise<void> {
    await this.#client.destroy();
  }

  /** Lets all that is sent in one go leave in one write: a write for each plant took half of the import's time. */
  #cork(): void {
    const socket = this.#socket;
    if (socket === undefined || this.#isCorked) return;
    this.#isCorked = true;
    socket.cork();
    process.nextTick(() => {
      this.#isCorked = false;
      socket.uncork();
    });
  }
}
