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
 * How a request is read (`connection-requests.ts`):
 *
 * | state | event | next state | sent |
 * |---|---|---|---|
 * | new, idle | an empty line, or its first byte | idle | |
 * | new, idle | empty lines over `EMPTY_LINES_MAX_BYTES` at once | flushing | 400 |
 * | new, idle, headers | a part of a header section | headers | |
 * | new, idle, headers | the same in the last read | flushing | 503 |
 * | new, idle, headers | an invalid section / one over `HEADER_MAX_BYTES` | flushing | 400 / 431 |
 * | new, idle, headers | a whole plain create with a known token | idle | its response |
 * | new, idle, headers | a part of such a create, with its header section | plainBody | |
 * | new, idle, headers | the header section of any other request | handling | |
 * | new, idle, headers | that of a plant, in the phases rejecting and closing | handling | |
 * | plainBody | the rest of it | idle | its response |
 * | plainBody | bytes, after its token was revoked or forgotten | handling | |
 * | headers, plainBody | end of input | flushing | 400 |
 * | new, headers | `HEADERS_TIMEOUT_MS` after the accept / the first byte | flushing | 408 |
 * | plainBody | `REQUEST_TIMEOUT_MS` after the first byte | flushing | 408 |
 * | new, headers, plainBody | `LAST_PART_MAX_MS` after the phase closing began | flushing | 503 |
 * | new, idle, headers | bytes, while responses are too many or not taken | full | |
 * | full | all responses are written and taken | as from idle | |
 * | new, idle, headers, plainBody, body | bytes, after the time of a tick is spent | deferred | |
 * | deferred | a later tick has time | as if the bytes arrived then | |
 * | deferred | the same, and a header section was read before | as after that section | |
 *
 * A request with a handler (`connection-handlers.ts`):
 *
 * | state | event | next state | sent |
 * |---|---|---|---|
 * | handling | the handler asks for a body that is not whole | body | 100, if it is expected |
 * | body | the rest of it | handling | |
 * | body | invalid / over `HEADER_MAX_BYTES` of chunk framing | flushing | 400 / 431 |
 * | body | end of input / `REQUEST_TIMEOUT_MS` after the first byte | flushing | 400 / 408 |
 * | handling | the plant is queued | idle | its response |
 * | handling | a response, and the request is whole | idle | the response |
 * | handling, body, deferred | a response, and the request is not whole | discarded | |
 * | discarded | the rest of the request | idle | the response |
 * | discarded | `DISCARD_TICKS`, or one tick after the last read | flushing | the response |
 * | discarded | the time of a tick is spent / invalid / end of input | flushing | the response |
 *
 * The end of a connection (`connection.ts`):
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
