import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { TakenParser } from './node-internals.ts';
import type { TickBudget } from './tick-budget.ts';

/** Bytes that Node's parser gets before it waits for responses: 20 of the shortest requests. */
export const PARSED_CHUNK_BYTES_MAX = 512;

interface ParsedConnection {
  readonly mayParse: boolean;
  /** The last request that began to arrive. */
  readonly latest: { readonly request: IncomingMessage } | undefined;
}

/**
 * Gives Node's HTTP parser the bytes of a connection in small chunks, within a tick budget. So only
 * few requests are parsed ahead of the first pending response. The rest goes back into the socket.
 *
 * The parser stops after a request with `Upgrade`, also if the response to it is HTTP/1.1. Node
 * would drop the following bytes. Here they are parsed. Until the next header section ends, the
 * parser then stops at an error without reporting it.
 */
export class NodeParser {
  readonly #socket: Socket;
  readonly #budget: TickBudget;
  readonly #connection: ParsedConnection;
  readonly #parser: TakenParser;

  constructor(socket: Socket, budget: TickBudget, connection: ParsedConnection) {
    this.#socket = socket;
    this.#budget = budget;
    this.#connection = connection;
    this.#parser = new TakenParser(socket, received => this.#parse(received));
    budget.defer(this.resume);
  }

  /** Parses the bytes that were put back, if the connection allows it. */
  readonly resume = (): void => {
    if (!this.#connection.mayParse || !this.#socket.isPaused()) return;
    this.#socket.resume();
    // `resume` alone would read in a later tick.
    this.#socket.read();
  };

  #parse(received: Buffer): number | Error {
    let start = 0;
    while (start < received.length) {
      if (!this.#connection.mayParse || !this.#budget.hasTime()) {
        this.#putBack(received.subarray(start));
        break;
      }
      const chunk = received.subarray(start, start + PARSED_CHUNK_BYTES_MAX);
      const parsed = this.#parseChunk(chunk);
      if (parsed instanceof Error) return parsed;
      start += parsed;
      if (this.#parser.isConnect) {
        this.#parser.release();
        break;
      }
    }
    return start;
  }

  #putBack(rest: Buffer): void {
    this.#socket.pause();
    this.#socket.unshift(rest);
    if (this.#connection.mayParse) this.#budget.defer(this.resume);
  }

  #parseChunk(chunk: Buffer): number | Error {
    const before = this.#connection.latest;
    const wasComplete = before?.request.complete;
    const parsed = this.#parser.execute(chunk);
    if (parsed instanceof Error || parsed === chunk.length || this.#parser.isConnect) return parsed;
    const { latest } = this.#connection;
    const isBehindRequest = latest?.request.complete && (latest !== before || !wasComplete);
    return isBehindRequest ? parsed : new Error('invalid HTTP after a request with Upgrade');
  }
}
