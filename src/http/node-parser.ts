import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { PARSED_CHUNK_BYTES_MAX } from './limits.ts';
import type { TickBudget } from './tick-budget.ts';

/** The part of Node's HTTP parser that is used here. It is not documented; Node reuses parsers for further connections. */
interface Parser {
  /** The message that is being parsed. */
  readonly incoming: IncomingMessage | null;
  /** @returns how many bytes were parsed, or the fault in them */
  execute(bytes: Buffer): number | Error;
}

/** The connection whose requests are parsed. */
interface ParsedConnection {
  /** Whether more of what has arrived may be parsed. */
  readonly mayRead: boolean;
  /** The last request that began to arrive. */
  readonly latestRequest: IncomingMessage | undefined;
}

const RTSP_LINE_END = / RTSP\/\d\.\d\r?\n/;
const RTSP_LINE_END_LENGTH = ' RTSP/1.0\r\n'.length;

/**
 * Decides what Node's HTTP parser is given of a connection, and when: a piece at a time, in turn with other connections,
 * so that few requests are parsed ahead of the first that has no response. The rest goes back into the socket.
 *
 * Two things are not left to the parser. It takes RTSP for HTTP: here a line that ends like a request line of RTSP is a fault.
 * And it stops behind a request with `Upgrade`, also where that is answered as one of HTTP/1.1, and Node would drop the rest:
 * here it is parsed. Until the next header section ends, the parser then stops at a fault without reporting it.
 */
export class NodeParser {
  readonly #socket: Socket;
  readonly #budget: TickBudget;
  readonly #connection: ParsedConnection;
  readonly #parser: Parser;
  readonly #execute: Parser['execute'];
  #isReleased = false;
  /** The last bytes that were parsed. */
  #lineEnd = '';

  /** @param socket that Node's HTTP server listens to */
  constructor(socket: Socket, budget: TickBudget, connection: ParsedConnection) {
    this.#socket = socket;
    this.#budget = budget;
    this.#connection = connection;
    const { parser } = socket as Socket & { parser: Parser };
    this.#parser = parser;
    this.#execute = Object.getPrototypeOf(parser).execute;
    // With a `data` listener Node gives the parser what the socket emits; without one the parser reads the handle itself.
    socket.on('data', () => {});
    parser.execute = arrived => this.#parse(arrived);
    socket.on('close', () => this.#release());
    budget.wait(this.readOn);
  }

  /** Has what was put back parsed, if it may be. */
  readonly readOn = (): void => {
    if (!this.#connection.mayRead || !this.#socket.isPaused()) return;
    this.#socket.resume();
    // At once, within the turn; `resume` alone reads later.
    this.#socket.read();
  };

  #parse(arrived: Buffer): number | Error {
    let start = 0;
    while (start < arrived.length) {
      if (!this.#connection.mayRead || !this.#budget.hasTime()) {
        this.#putBack(arrived.subarray(start));
        break;
      }
      const chunk = arrived.subarray(start, start + PARSED_CHUNK_BYTES_MAX);
      const parsed = this.#parseChunk(chunk);
      if (parsed instanceof Error) return parsed;
      start += parsed;
      if (this.#isBehindConnect) {
        this.#release();
        break;
      }
    }
    return start;
  }

  /** CONNECT stops the parser as well, and is refused; Node then keeps the parser for another connection. */
  get #isBehindConnect(): boolean {
    return this.#parser.incoming?.method === 'CONNECT';
  }

  /** Leaves the parser as it was. Once: another connection may have it from then on. */
  #release(): void {
    if (!this.#isReleased) Reflect.deleteProperty(this.#parser, 'execute');
    this.#isReleased = true;
  }

  #putBack(rest: Buffer): void {
    this.#socket.pause();
    this.#socket.unshift(rest);
    if (this.#connection.mayRead) this.#budget.wait(this.readOn);
  }

  #parseChunk(chunk: Buffer): number | Error {
    const text = this.#lineEnd + chunk.toString('latin1');
    const rtspAt = text.search(RTSP_LINE_END);
    const rtspFree = rtspAt === -1 ? chunk : chunk.subarray(0, Math.max(0, rtspAt - this.#lineEnd.length));
    if (rtspFree.length === 0) return new Error('RTSP');
    const before = this.#connection.latestRequest;
    const wasComplete = before?.complete;
    const parsed = this.#execute.call(this.#parser, rtspFree);
    if (parsed instanceof Error) return parsed;
    this.#lineEnd = text.slice(0, this.#lineEnd.length + parsed).slice(-RTSP_LINE_END_LENGTH);
    if (parsed === rtspFree.length || this.#isBehindConnect) return parsed;
    const latest = this.#connection.latestRequest;
    const isBehindRequest = latest?.complete && (latest !== before || !wasComplete);
    return isBehindRequest ? parsed : new Error('invalid HTTP behind a request with Upgrade');
  }
}
