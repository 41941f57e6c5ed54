import type { Socket } from 'node:net';
import type { IterationBudget } from '../core/iteration-budget.ts';
import type { ByteText } from '../core/request.ts';
import { ConnectionHandlers } from './connection-handlers.ts';
import { ConnectionRequests } from './connection-requests.ts';
import {
  type ConnectionState,
  ENTERED,
  type Entered,
  FLUSHING,
  IDLE,
  type ReceivingMode,
  type StateMachine,
} from './connection-state.ts';
import { overdueOf } from './connection-timeouts.ts';
import { LastRead } from './last-read.ts';
import { Output } from './output.ts';
import { ResponseQueue } from './response-queue.ts';
import { ResponseWriter } from './response-writer.ts';
import { rejectsPlants, type ServerContext } from './server-context.ts';
import { readIntoSharedBuffer } from './shared-read-buffer.ts';
import { UNTAKEN_MAX_MS } from './timeouts.ts';

/**
 * A connection with a client: its socket and its {@link ConnectionState}, which only `enter` changes.
 * Its parts read requests ({@link ConnectionRequests}) and pass them on to their handlers
 * ({@link ConnectionHandlers}). In every state, responses leave in the order of their requests
 * ({@link ResponseQueue}). The table has the end of a connection; its parts have the other tables:
 *
 * | state | event | next state | sent |
 * |---|---|---|---|
 * | new, idle | end of input, and no response is pending | lingering | |
 * | idle | the last pending response is written, after the end of input | lingering | |
 * | idle | the last pending response is written, after a stop began | lingering | |
 * | new, idle | the phase rejecting or closing, and no response is pending | lingering | |
 * | idle | the last read is over, and responses are pending | flushing | |
 * | idle | unused for `STATE_TIMEOUTS_MS.idle`, and all responses are taken | closed | |
 * | flushing | the last response is written | lingering | |
 * | lingering | the client ends its side / `LINGER_MS` after it has taken all | closed | |
 * | any | a delivery of a wrapper ends it | lingering / closed | a response / a part of it |
 * | any | the client takes nothing of what is written for `UNTAKEN_MAX_MS` | closed | |
 * | any | reset / `SHUTDOWN_MS` after a stop began | closed | |
 */
export class Connection implements StateMachine {
  readonly #socket: Socket;
  readonly #context: ServerContext;
  readonly #output: Output;
  readonly #responses: ResponseQueue;
  readonly #lastRead: LastRead;
  readonly #handlers: ConnectionHandlers;
  readonly #requests: ConnectionRequests;
  #state: ConnectionState;
  /** Received bytes for later, from the beginning of a request or of the rest of its body. */
  #unread: ByteText = '';
  /** When a response was last written or taken; ms, monotonic clock. Input does not count. */
  #usedAt: number;

  constructor(socket: Socket, context: ServerContext) {
    const { clock } = context;
    this.#socket = socket;
    this.#context = context;
    this.#usedAt = clock.now();
    this.#state = { kind: 'new', since: this.#usedAt };
    this.#output = new Output(socket, () => this.#onWrite(false), clock);
    const isInputOver = (): boolean => context.phase.kind !== 'running' && this.#state.kind === 'idle';
    const written = { socket, output: this.#output, isInputOver, onWrite: this.#onWrite };
    this.#responses = new ResponseQueue(new ResponseWriter(written, context), context);
    this.#lastRead = new LastRead(context);
    this.#handlers = new ConnectionHandlers(context, this, this.#responses, this.#lastRead);
    this.#requests = new ConnectionRequests(context, this, this.#handlers, this.#responses, this.#lastRead);
    if (!readIntoSharedBuffer(socket, this.#receive))
      socket.on('data', (chunk: Buffer) => this.#receive(chunk, chunk.length));
    socket.on('end', () => this.#onEnd());
    socket.on('error', this.destroy);
    socket.on('close', this.#onClose);
  }

  get state(): ConnectionState {
    return this.#state;
  }

  readonly destroy = (): void => {
    this.#socket.destroy();
  };

  /** Ends the connection if it has nothing to do. */
  endIfIdle(): void {
    const isIdle = this.#state.kind === 'idle' || this.#state.kind === 'new';
    if (isIdle && this.#responses.length === 0) this.#linger();
  }

  /** Ends what has lasted too long. It is called often. @param now ms, monotonic clock */
  enforceTimeouts(now: number): void {
    const { waitingSinceMs } = this.#output;
    if (waitingSinceMs !== undefined && now - waitingSinceMs >= UNTAKEN_MAX_MS) {
      this.destroy();
      return;
    }
    const state = this.#state;
    const isAtWork = this.#responses.length > 0 || waitingSinceMs !== undefined;
    const overdue = overdueOf(state, isAtWork ? undefined : this.#usedAt, this.#lastRead, now);
    if (overdue === undefined) return;
    if (overdue === 'unused') this.destroy();
    else if (state.kind === 'body') this.#handlers.fail(state, overdue);
    else this.#requests.fail(overdue);
  }

  /** @param buffer its first bytes are valid during this call */
  readonly #receive = (buffer: Buffer, length: number): void => {
    const state = this.#state;
    const { clock, phase } = this.#context;
    if (phase.kind !== 'running') this.#lastRead.receive(clock.now());
    switch (state.kind) {
      case 'new':
      case 'idle':
      case 'headers':
      case 'plainBody': {
        const received = buffer.toString('latin1', 0, length);
        this.#requests.read(state, this.#unread === '' ? received : this.#unread + received);
        break;
      }
      case 'body':
      case 'discarded':
        this.#handlers.decode(state, buffer.subarray(0, length));
        break;
      case 'handling':
      case 'full':
      case 'deferred':
        this.#unread += buffer.toString('latin1', 0, length);
        this.#socket.pause();
        break;
      // In all other states, input is discarded.
    }
  };

  enter(state: ConnectionState, unread: ByteText = ''): Entered {
    this.#state = state;
    this.#unread = unread;
    switch (state.kind) {
      case 'full':
      case 'deferred':
        this.#socket.pause();
        break;
      // While a handler works, the first bytes that arrive pause the socket.
      case 'handling':
      case 'closed':
        break;
      default:
        if (this.#socket.isPaused()) this.#socket.resume();
    }
    const isLate = state.kind === 'idle' && rejectsPlants(this.#context.phase);
    if (this.#socket.readableEnded) this.#onEnd();
    else if (isLate && this.#responses.length === 0) this.#linger();
    else if (isLate && this.#lastRead.isOver) {
      this.#responses.endAfterAll();
      this.enter(FLUSHING);
    }
    return ENTERED;
  }

  resume(mode: ReceivingMode): void {
    if (mode.kind === 'body' || mode.kind === 'discarded')
      this.#handlers.decode(mode, Buffer.from(this.#unread, 'latin1'));
    else this.#requests.read(mode, this.#unread);
  }

  defer(budget: IterationBudget, next: ReceivingMode, unread: ByteText): Entered {
    const state: ConnectionState = { kind: 'deferred', next };
    budget.defer(() => {
      if (this.#state === state) this.resume(next);
    });
    return this.enter(state, unread);
  }

  #onEnd(): void {
    const state = this.#state;
    switch (state.kind) {
      case 'new':
      case 'idle':
        if (this.#responses.length === 0) this.#linger();
        break;
      case 'headers':
      case 'plainBody':
        this.#requests.fail('badHttp');
        break;
      case 'body':
        this.#handlers.fail(state, 'badHttp');
        break;
      case 'discarded':
        this.#handlers.endDiscarding(state);
        break;
    }
  }

  readonly #onWrite = (isLast: boolean): void => {
    this.#usedAt = this.#context.clock.now();
    if (isLast) this.enter({ kind: 'lingering' });
    else this.#onProgress();
  };

  #onProgress(): void {
    if (this.#responses.length > 0) return;
    if (this.#state.kind === 'full') {
      if (!this.#output.isWaiting) this.resume(IDLE);
    } else if (this.#state.kind === 'idle' && this.#socket.readableEnded) this.#onEnd();
  }

  /**
   * Ends our side after all responses. Received bytes are discarded until the client closes its
   * side, for a limited time. An immediate close would reset the connection while the client sends,
   * and it might lose its last responses (RFC 9112 section 9.6).
   */
  #linger(): void {
    this.#usedAt = this.#context.clock.now();
    this.#output.end();
    this.enter({ kind: 'lingering' });
  }

  readonly #onClose = (): void => {
    this.enter({ kind: 'closed' });
    this.#handlers.end();
  };
}
