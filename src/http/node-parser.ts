import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { PARSED_CHUNK_BYTES_MAX } from './limits.ts';
import type { TickBudget } from './tick-budget.ts';

/** A part of Node's HTTP parser. It is undocumented. Node reuses parsers for other connections. */
interface Parser {
  readonly incoming: IncomingMessage | null;
  /** @returns how many bytes were parsed, or the error in them */
  execute(bytes: Buffer): number | Error;
}

interface ParsedConnection {
  readonly mayParse: boolean;
  /** The last request that began to arrive. */
  readonly latest: { readonly request: IncomingMessage } | undefined;
}

const RTSP_LINE_END = / RTSP\/\d\.\d\r?\n/;
const RTSP_LINE_END_LENGTH = ' RTSP/1.0\r\n'.length;

/**
 * Gives Node's HTTP parser the bytes of a connection in small chunks, within a tick budget. So only
 * few requests are parsed ahead of the first pending response. The rest goes back into the socket.
 *
 * Two cases are handled here and not by the parser:
 * - The parser accepts RTSP as HTTP. Here a line that ends like a request line of RTSP is an error.
 * - The parser stops after a request with `Upgrade`, also if the response to it is HTTP/1.1. Node
 *   would drop the following bytes. Here they are parsed. Until the next header section ends, the
 *   parser then stops at an error without reporting it.
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

  constructor(socket: Socket, budget: TickBudget, connection: ParsedConnection) {
    this.#socket = socket;
    this.#budget = budget;
    this.#connection = connection;
    const { parser } = socket as Socket & { parser: Parser };
    this.#parser = parser;
    this.#execute = Object.getPrototypeOf(parser).execute;
    // Without a `data` listener, Node's parser would read from the handle, past the socket.
    socket.on('data', () => {});
    parser.execute = received => this.#parse(received);
    socket.on('close', () => this.#release());
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
      if (this.#isConnect) {
        this.#release();
        break;
      }
    }
    return start;
  }

  /** CONNECT also stops the parser. It is rejected, and Node reuses the parser. */
  get #isConnect(): boolean {
    return this.#parser.incoming?.method === 'CONNECT';
  }

  /** Restores the parser, only once: another connection may use it afterwards. */
  #release(): void {
    if (!this.#isReleased) Reflect.deleteProperty(this.#parser, 'execute');
    this.#isReleased = true;
  }

  #putBack(rest: Buffer): void {
    this.#socket.pause();
    this.#socket.unshift(rest);
    if (this.#connection.mayParse) this.#budget.defer(this.resume);
  }

  #parseChunk(chunk: Buffer): number | Error {
    const text = this.#lineEnd + chunk.toString('latin1');
    const rtspAt = text.search(RTSP_LINE_END);
    const rtspFree = rtspAt === -1 ? chunk : chunk.subarray(0, Math.max(0, rtspAt - this.#lineEnd.length));
    if (rtspFree.length === 0) return new Error('RTSP');
    const before = this.#connection.latest;
    const wasComplete = before?.request.complete;
    const parsed = this.#execute.call(this.#parser, rtspFree);
    if (parsed instanceof Error) return parsed;
    this.#lineEnd = text.slice(0, this.#lineEnd.length + parsed).slice(-RTSP_LINE_END_LENGTH);
    if (parsed === rtspFree.length || this.#isConnect) return parsed;
    const { latest } = this.#connection;
    const isBehindRequest = latest?.request.complete && (latest !== before || !wasComplete);
    return isBehindRequest ? parsed : new Error('invalid HTTP after a request with Upgrade');
  }
}
