import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { REFUSED_REST_BYTES_MAX, SERVER_PIECE_BYTES_MAX } from './limits.ts';
import { bodyBytesOf } from './request-body.ts';
import type { ServerTurns } from './request-turns.ts';

/** Ends every head, and every body in chunks. */
const SECTION_END = '\r\n\r\n';
const NOTHING = Buffer.alloc(0);

/**
 * A connection as Node's HTTP server has it. Given the socket itself, that server parses all that has arrived before it
 * answers any of it, which may be thousands of requests. So it gets this in its place: what has arrived comes in pieces,
 * each in its turn, and what follows a whole request comes when the client has taken its answer.
 *
 * A piece ends where a request may end, as far as that can be told without parsing: behind each head, with the body of a
 * known length, and behind whatever else ends as a head does. Where it is cut changes nothing of what it means, for that is
 * up to the parser alone.
 */
export class PacedConnection extends Duplex {
  readonly socket: Socket;
  readonly #turns: ServerTurns;
  /** Arrived and not given to the server; nothing more is read meanwhile. */
  #held: Buffer;
  /** Whether the client has closed its side. */
  #hasEnded: boolean;
  /** The request that has no answer yet: one at most, as a piece ends where a request does. */
  #unanswered: IncomingMessage | undefined;
  /** Whether the server has the beginning of a head, or of another section. */
  #isWithinHead = false;
  /** The last characters of the section that the server has the beginning of: its end may be cut in two. */
  #sectionTail = '';
  /** What is to come of a body whose length is known. */
  #bodyLeftBytes = 0;
  #isTurnDue = false;
  /** Refusals of that request, which wait to see whether it is whole. */
  #judged: (() => void)[] = [];
  #judgedBytes = 0;

  /**
   * @param arrived on the socket and not read
   * @param hasEnded whether the client has closed its side behind it
   */
  constructor(socket: Socket, arrived: Buffer, hasEnded: boolean, turns: ServerTurns) {
    super({ decodeStrings: false });
    this.socket = socket;
    this.#held = arrived;
    this.#hasEnded = hasEnded;
    this.#turns = turns;
    this.on('resume', () => this.#goOn());
    socket.on('data', this.#onData);
    socket.on('end', () => {
      this.#hasEnded = true;
      this.#goOn();
    });
    socket.on('timeout', () => this.emit('timeout'));
    socket.on('error', () => this.destroy());
    socket.on('close', () => this.destroy());
  }

  /** The connection of a request; Node's types say that it is a socket. */
  static of(request: IncomingMessage): PacedConnection {
    return request.socket as Duplex as PacedConnection;
  }

  get remoteAddress(): string | undefined {
    return this.socket.remoteAddress;
  }

  /** As of a socket. */
  get timeout(): number | undefined {
    return this.socket.timeout;
  }

  /** As of a socket, whose `timeout` event comes here as well. */
  setTimeout(ms: number): this {
    this.socket.setTimeout(ms);
    return this;
  }

  /** Told of each request whose head has been parsed and that will be answered. */
  began(request: IncomingMessage, response: ServerResponse): void {
    this.#unanswered = request;
    this.#bodyLeftBytes = bodyBytesOf(request);
    response.on('close', () => {
      this.#unanswered = undefined;
      this.#goOn();
    });
  }

  /** Closes it if no request has begun to arrive, and the client has every answer. */
  closeIfIdle(): void {
    if (this.#held.length === 0 && this.#unanswered === undefined && !this.#isWithinHead) this.destroy();
  }

  /** Settles when the server has all of the request, or as much of it as is there without waiting for its client. */
  hasGiven(): Promise<void> {
    return new Promise(resolve => {
      this.#judged.push(resolve);
      this.#goOn();
    });
  }

  readonly #onData = (piece: Buffer): void => {
    // RFC 9112 section 9.6: behind an answer that closes the connection no further request is processed.
    if (this.writableEnded) return;
    this.socket.pause();
    this.#held = this.#held.length === 0 ? piece : Buffer.concat([this.#held, piece]);
    this.#goOn();
  };

  #goOn(): void {
    if (this.#isTurnDue) return;
    this.#isTurnDue = true;
    this.#turns.wait(() => this.#takeTurn());
  }

  #takeTurn(): void {
    this.#isTurnDue = false;
    // A socket is read by a part at a time, so more may be there where some was.
    const isMoreThere = this.#held.length > 0 && this.#judgedBytes < REFUSED_REST_BYTES_MAX;
    let givenBytes = 0;
    // A body goes with its head as far as it is there: a request that is refused leaves the connection open if it is whole.
    while (this.#held.length > 0 && this.readableFlowing && !this.#unanswered?.complete) {
      if (givenBytes >= SERVER_PIECE_BYTES_MAX) {
        this.#goOn();
        return;
      }
      const piece = this.#nextPiece();
      this.#held = this.#held.subarray(piece.length);
      if (this.#judged.length > 0) this.#judgedBytes += piece.length;
      givenBytes += piece.length;
      this.push(piece);
    }
    this.#tellJudged(isMoreThere && !this.#hasEnded);
    if (this.#held.length > 0 || this.destroyed) return;
    if (this.#hasEnded) this.push(null);
    else this.socket.resume();
  }

  /** The beginning of what is held, to where a request may end. */
  #nextPiece(): Buffer {
    const most = this.#held.subarray(0, SERVER_PIECE_BYTES_MAX);
    if (this.#bodyLeftBytes > 0) {
      const piece = most.subarray(0, this.#bodyLeftBytes);
      this.#bodyLeftBytes -= piece.length;
      return piece;
    }
    const section = this.#sectionTail + most.toString('latin1');
    const sectionEnd = section.indexOf(SECTION_END);
    if (sectionEnd === -1) {
      // RFC 9112 section 2.2: empty lines before a head are none of it.
      this.#isWithinHead ||= /[^\r\n]/.test(section);
      this.#sectionTail = section.slice(1 - SECTION_END.length);
      return most;
    }
    const endInPiece = sectionEnd + SECTION_END.length - this.#sectionTail.length;
    this.#isWithinHead = false;
    this.#sectionTail = '';
    return most.subarray(0, endInPiece);
  }

  #tellJudged(isMoreThere: boolean): void {
    if (this.#judged.length === 0) return;
    const isWhole = this.#unanswered === undefined || this.#unanswered.complete;
    if (isWhole || (this.#held.length === 0 && !isMoreThere)) {
      for (const resolve of this.#judged) resolve();
      this.#judged = [];
      this.#judgedBytes = 0;
    } else if (this.#held.length === 0) {
      this.#goOn();
    }
  }

  #dropHeld(): void {
    this.#held = NOTHING;
    this.#tellJudged(false);
  }

  override _read(): void {
    // What is there is given when it comes, when an answer was taken, and when the server goes on reading.
  }

  override _write(
    chunk: string | Uint8Array,
    encoding: BufferEncoding,
    done: (error?: Error | null) => void,
  ): void {
    this.socket.write(chunk, encoding, done);
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#dropHeld();
    this.socket.resume();
    this.socket.end(done);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#dropHeld();
    this.socket.destroy();
    done(error);
  }
}
