import type { Socket } from 'node:net';
import { type Answer, type AnsweredRequest, answerText, errorAnswer } from './answer.ts';
import type { Connections } from './connections.ts';
import {
  DISCARD_MS,
  HEADERS_WAIT_MS,
  KEEP_ALIVE_MARGIN_MS,
  KEEP_ALIVE_MS,
  ORDINARY_HEAD_BYTES_MAX,
  ORDINARY_PIPELINE_MAX,
  ORDINARY_REST_BYTES_MAX,
  ORDINARY_REST_WAIT_MS,
  STALLED_CONNECTION_MS,
} from './limits.ts';
import { type OrdinaryHeads, REQUEST_LINE } from './ordinary-head.ts';
import type { PlantService } from './plant-service.ts';
import type { RequestTurns } from './request-turns.ts';

const BEGINNING = Buffer.from(`${REQUEST_LINE}\r\n`);
const HEAD_END = '\r\n\r\n';

/** What all connections of the fast path are served with, and where they go when a request is not ordinary. */
export interface FastPath extends PlantService {
  readonly heads: OrdinaryHeads;
  /**
   * Of requests behind which their connection waits for no other answer, and of those that it sends further meanwhile.
   * The two share each turn of the event loop, so that a client that sends one plant at a time does not wait for those
   * that send thousands.
   */
  readonly firstTurns: RequestTurns;
  readonly furtherTurns: RequestTurns;
  /** All connections that are served here now. */
  readonly open: Set<OrdinaryConnection>;
  /** Those of Node's HTTP server: while they drain, no further request is ordinary. */
  readonly connections: Connections;
  /** Has Node's HTTP server serve a connection from here on, beginning with what has arrived and was not taken. */
  serveHttp(socket: Socket, arrived: Buffer, hasEnded: boolean): void;
}

/** What a connection waits for while nothing moves on it, and for how long. */
const WAIT_MS = {
  first: HEADERS_WAIT_MS,
  rest: ORDINARY_REST_WAIT_MS,
  // A third of the time, since Node's socket takes the first look at a write that waits for progress, and looks once more.
  reader: STALLED_CONNECTION_MS / 3,
  next: KEEP_ALIVE_MS + KEEP_ALIVE_MARGIN_MS,
  close: DISCARD_MS,
};

/** A request that was taken. */
interface Pending extends AnsweredRequest {
  answer: Answer | undefined;
}

/**
 * Serves a connection as long as its requests are ordinary; past Node's HTTP server, which costs more than all the rest
 * of a create (docs/performance.md).
 *
 * A request is ordinary when {@link OrdinaryHeads} takes its head, and it arrives whole, or, if its token is known, its rest
 * with the next piece. Several may arrive in one piece. At the first that is not ordinary, reading stops until those before it have
 * their answers; then the connection goes to Node's HTTP server for good, with all that has arrived from there on. So
 * nothing is refused here for its form: what is hard in HTTP is left to Node's parser.
 */
export class OrdinaryConnection {
  readonly #socket: Socket;
  readonly #service: FastPath;
  /** In the order in which their answers are due. */
  readonly #pending: Pending[] = [];
  /** Arrived and not taken: the first piece of a request, or, while reading is stopped, what must wait. */
  #held: Buffer | undefined;
  /** When the last piece came. */
  #arrivedAt = 0;
  /**
   * Why nothing is read: until there is room for further answers, for the requests of other connections to have their
   * turn, or for a request that is the HTTP server's.
   */
  #stoppedFor: 'room' | 'turn' | 'other' | undefined;
  #awaits: keyof typeof WAIT_MS = 'first';
  #flushIsDue = false;
  /** Whether the token of the last request that was taken is looked for. */
  #isLooking = false;
  /** Whether the client has closed its side; it may still want its answers. */
  #hasEnded = false;

  constructor(socket: Socket, service: FastPath) {
    this.#socket = socket;
    this.#service = service;
    service.open.add(this);
    this.#await('first');
    socket.on('data', this.#onData).on('end', this.#onEnd).on('drain', this.goOn);
    socket.on('timeout', this.#onTimeout).on('error', this.close).on('close', this.#onClose);
  }

  /** Closes the connection if it awaits no answer, behind those that the client has yet to read. */
  closeIfIdle(): void {
    if (this.#pending.length === 0 && this.#held === undefined) this.#socket.destroySoon();
  }

  readonly #onData = (piece: Buffer): void => {
    // RFC 9112 section 9.6: behind an answer that closes the connection no further request is processed.
    if (this.#socket.writableEnded) return;
    const held = this.#held;
    if (this.#awaits === 'first' || this.#awaits === 'rest') {
      this.#await(this.#socket.writableLength > 0 ? 'reader' : 'next');
    }
    this.#held = undefined;
    this.#arrivedAt = performance.now();
    if (held === undefined) this.#takeAll(piece, false);
    else this.#takeAll(Buffer.concat([held, piece]), true);
  };

  #await(what: keyof typeof WAIT_MS): void {
    this.#awaits = what;
    this.#socket.setTimeout(WAIT_MS[what]);
  }

  /** @param isContinued whether this begins with a request whose first piece came before */
  #takeAll(arrived: Buffer, isContinued: boolean): void {
    let start = 0;
    while (start < arrived.length) {
      const end = this.#isFull ? 'room' : this.#take(arrived, start);
      if (typeof end !== 'number') {
        this.#keep(arrived.subarray(start), end, isContinued && start === 0);
        return;
      }
      start = end;
    }
  }

  /** Whether further requests wait until those before them are answered, and the answers taken. */
  get #isFull(): boolean {
    return this.#isLooking || this.#pending.length >= ORDINARY_PIPELINE_MAX || this.#socket.writableNeedDrain;
  }

  /** What the next request has its turn of. */
  get #turns(): RequestTurns {
    return this.#pending.length === 0 ? this.#service.firstTurns : this.#service.furtherTurns;
  }

  /** @returns where the request that begins at `start` ends, if it was taken */
  #take(arrived: Buffer, start: number): number | 'incomplete' | 'turn' | 'other' {
    const { createPlant, heads, connections } = this.#service;
    if (connections.draining) return 'other';
    const headEnd = arrived.indexOf(HEAD_END, start, 'latin1');
    if (headEnd === -1) return mayBeOrdinary(arrived.subarray(start)) ? 'incomplete' : 'other';
    const head = heads.read(arrived.toString('latin1', start, headEnd));
    if (head === undefined || head.bodyBytes > createPlant.bodyBytesMax) return 'other';
    const holder = createPlant.knownHolder(head.tokenHash);
    const bodyStart = headEnd + HEAD_END.length;
    const end = bodyStart + head.bodyBytes;
    if (end > arrived.length) {
      const mayComeWhole = holder !== undefined && head.bodyBytes <= ORDINARY_REST_BYTES_MAX;
      return mayComeWhole ? 'incomplete' : 'other';
    }
    if (!this.#turns.take(head.bodyBytes)) return 'turn';
    const pending: Pending = {
      answer: undefined,
      arrivedAt: this.#arrivedAt,
      bodyBytes: holder === undefined ? 0 : head.bodyBytes,
    };
    this.#pending.push(pending);
    const body = arrived.subarray(bodyStart, end);
    const answering =
      holder === undefined
        ? this.#createLooking(pending, head.tokenHash, body)
        : createPlant.createOrdinary(holder, body);
    answering.then(
      answer => this.#answered(pending, answer),
      cause => {
        this.#service.failed(cause);
        this.#answered(pending, errorAnswer('internal'));
      },
    );
    return end;
  }

  /** As of a known token; nothing behind it is taken meanwhile, so a client that guesses waits for each look. */
  async #createLooking(pending: Pending, tokenHash: string, body: Buffer): Promise<Answer> {
    this.#isLooking = true;
    const holder = await this.#service.createPlant.lookForHolder(tokenHash);
    this.#isLooking = false;
    if (typeof holder !== 'number') return holder;
    pending.bodyBytes = body.length;
    return this.#service.createPlant.createOrdinary(holder, body);
  }

  #keep(rest: Buffer, why: 'room' | 'turn' | 'incomplete' | 'other', isContinued: boolean): void {
    this.#held = rest;
    if (why === 'incomplete' && !isContinued) {
      if (this.#pending.length === 0) this.#await('rest');
      return;
    }
    this.#stoppedFor = why === 'incomplete' ? 'other' : why;
    this.#socket.pause();
    if (why === 'turn') this.#turns.wait(() => this.#takeHeld());
    else this.goOn();
  }

  #answered(pending: Pending, answer: Answer): void {
    pending.answer = answer;
    if (this.#pending.length === 1) this.#flush();
    else if (!this.#flushIsDue) {
      // Those of the same commit are all settled by then, and go in one write.
      this.#flushIsDue = true;
      process.nextTick(() => this.#flush());
    }
  }

  /** Writes the answers that are due, each in its turn. */
  #flush(): void {
    this.#flushIsDue = false;
    const socket = this.#socket;
    const { connections, documentation, answered } = this.#service;
    if (socket.destroyed) return;
    let text = '';
    let isLast = false;
    for (let next = this.#pending[0]; next?.answer !== undefined; next = this.#pending[0]) {
      this.#pending.shift();
      isLast = connections.draining && this.#pending.length === 0 && this.#held === undefined;
      answered(next.answer, next, socket);
      text += answerText(next.answer, isLast, documentation !== undefined);
    }
    if (text !== '') socket.write(text);
    if (socket.writableLength > 0) this.#await('reader');
    // What still comes is dropped for a while; closing at once would reset the connection, and the answer be lost.
    if (isLast) socket.end(() => this.#await('close'));
    else this.goOn();
  }

  /** Turns to what is held, or to the end of the connection, once nothing is pending. */
  readonly goOn = (): void => {
    if (this.#pending.length > 0) return;
    const held = this.#held;
    if (held === undefined) {
      if (this.#hasEnded) this.#socket.end();
      return;
    }
    if (this.#socket.writableNeedDrain) return;
    if (this.#stoppedFor === 'other' || this.#hasEnded || this.#service.connections.draining)
      this.#leave(held);
    else if (this.#stoppedFor === undefined) this.#await('rest');
    else if (this.#stoppedFor === 'room') this.#takeHeld();
  };

  /** Goes on with what is held, unless the connection was closed or left to the HTTP server meanwhile. */
  #takeHeld(): void {
    const held = this.#held;
    if (held === undefined || this.#socket.destroyed) return;
    this.#held = undefined;
    this.#stoppedFor = undefined;
    this.#socket.resume();
    this.#takeAll(held, false);
  }

  readonly #onEnd = (): void => {
    this.#hasEnded = true;
    this.goOn();
  };

  /** Nothing has moved on the connection for a while. */
  readonly #onTimeout = (): void => {
    const socket = this.#socket;
    if (this.#awaits === 'first') {
      this.#detach();
      // A client may reset the connection meanwhile, and an error that nobody hears ends the process.
      socket.on('error', this.close);
      this.#service.connections.refuseRest(socket, errorAnswer('tooSlow'));
    } else if (this.#awaits === 'rest' && this.#held !== undefined) {
      this.#leave(this.#held);
    } else if (socket.writableLength > 0) {
      // The client reads no answers.
      socket.destroy();
    } else if (this.#pending.length > 0 || this.#awaits === 'reader') {
      this.#await('next');
    } else {
      socket.destroy();
    }
  };

  /** Cuts the connection. */
  readonly close = (): void => {
    this.#socket.destroy();
  };

  readonly #onClose = (): void => {
    this.#service.open.delete(this);
  };

  #leave(rest: Buffer): void {
    this.#held = undefined;
    this.#detach();
    this.#service.serveHttp(this.#socket, rest, this.#hasEnded);
  }

  #detach(): void {
    const socket = this.#socket;
    socket.off('data', this.#onData).off('end', this.#onEnd).off('drain', this.goOn);
    socket.off('timeout', this.#onTimeout).off('error', this.close).off('close', this.#onClose);
    this.#service.open.delete(this);
  }
}

/** Whether a head that has not arrived whole begins as an ordinary one; any other is judged at once. */
function mayBeOrdinary(arrived: Buffer): boolean {
  const length = Math.min(arrived.length, BEGINNING.length);
  return arrived.length <= ORDINARY_HEAD_BYTES_MAX && arrived.compare(BEGINNING, 0, length, 0, length) === 0;
}
