import type { IterationBudget } from '../core/iteration-budget.ts';
import type { ByteText } from '../core/request.ts';
import type { HttpResponse } from '../core/response.ts';
import type { HandledRequest } from './handled-request.ts';
import type { ParsedHeaders } from './parsed-headers.ts';
import type { PendingResponse } from './response-queue.ts';

/**
 * What a connection waits for, and what it does with input meanwhile.
 *
 * - `new`: the first byte of its first request. Input is read.
 * - `idle`: the first byte of the next request. Input is read.
 * - `headers`: the rest of a header section. Input is read.
 * - `plainBody`: the rest of the body of a plain create. Input is read.
 * - `full`: the client, which has too many responses pending or not taken. Reading is paused.
 * - `deferred`: a later tick, since the time of this one is spent. Reading is paused.
 * - `handling`: the handler of a request. Reading is paused when bytes arrive.
 * - `body`: the rest of a body for which a handler has asked. Input is read.
 * - `discarded`: the rest of a rejected request. Input is read, and its content is discarded.
 * - `flushing`: the write of the last response. Input is discarded.
 * - `lingering`: the end of the client's side, since our side has ended. Input is discarded.
 * - `closed`: nothing.
 *
 * A client has *taken* the bytes that the kernel has accepted for it. The phases of a stop are
 * those of `ServerPhase`. The *last read* of a connection is its first one in the phase closing
 * (`last-read.ts`). Bytes after a request are read at once, as in idle. After a request with
 * `Connection: close`, the next state is flushing where a table says idle.
 *
 * A table above each class says what leads from one state to the next: how a request is read
 * (`connection-requests.ts`), a request with a handler (`connection-handlers.ts`) and the end of a
 * connection (`connection.ts`).
 */
export type ConnectionState = HeadersState | AwaitedPlainBody | Handling | BodyState | PassiveState;

/** The states in which a request begins, or its header section is incomplete. */
export type HeadersState =
  /** `since` is when the connection was accepted. All times are ms on the monotonic clock. */
  | { kind: 'new'; since: number }
  | { kind: 'idle' }
  /** Its first byte arrived at `since`. `scanned` bytes of it may become a header section. */
  | { kind: 'headers'; since: number; scanned: number };

/** A request whose header section was read. */
export interface BegunRequest {
  /** When the first byte of the request arrived. */
  since: number;
  parsed: ParsedHeaders;
  /** The header section arrived before the grace period of a stop ended, so a plant is accepted. */
  cameInTime: boolean;
}

interface AwaitedPlainBody extends BegunRequest {
  kind: 'plainBody';
}

/** A request of any kind that waits in `deferred` for time. */
interface DelayedRequest extends BegunRequest {
  kind: 'delayed';
}

/** How the first of some requests is read: as in a state, or as one that was delayed. */
export type RequestMode = HeadersState | AwaitedPlainBody | DelayedRequest;

interface InHandler {
  /** When the first byte of the request arrived. */
  since: number;
  handled: HandledRequest;
  pending: PendingResponse;
}

export interface Handling extends InHandler {
  kind: 'handling';
}

export interface AwaitedBody extends InHandler {
  kind: 'body';
}

export interface Discarding extends InHandler {
  kind: 'discarded';
  response: HttpResponse;
}

/** The states in which a body is read. */
export type BodyState = AwaitedBody | Discarding;

/** How received bytes are read. */
export type ReceivingMode = RequestMode | BodyState;

/** The states in which nothing is read. */
type PassiveState =
  | { kind: 'full' }
  | { kind: 'deferred'; next: ReceivingMode }
  | { kind: 'flushing' }
  | { kind: 'lingering' }
  | { kind: 'closed' };

export const IDLE: HeadersState = { kind: 'idle' };
export const FLUSHING: ConnectionState = { kind: 'flushing' };

/** The connection has entered a state, so nothing more is read now. */
export interface Entered {
  kind: 'entered';
}

export const ENTERED: Entered = { kind: 'entered' };

/** Changes the state of a connection. */
export interface StateMachine {
  readonly state: ConnectionState;
  /**
   * Enters a state, and pauses or resumes input as the state needs it.
   *
   * @param unread the received bytes that are read later, by default none. The connection drops all
   * others
   */
  enter(state: ConnectionState, unread?: ByteText): Entered;
  /**
   * Reads the unread bytes as if they arrived now. The connection enters the state of the mode,
   * or the one to which the bytes lead.
   */
  resume(mode: ReceivingMode): void;
  /** Enters `deferred`. A later tick resumes with `next`. @param unread as in `enter` */
  defer(budget: IterationBudget, next: ReceivingMode, unread: ByteText): Entered;
}
