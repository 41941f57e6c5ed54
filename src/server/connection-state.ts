import { REQUEST_TIMEOUT_MS } from '../core/contract/limits.ts';
import type { HttpResponse } from '../core/response.ts';
import type { Exchange } from './exchange.ts';
import type { KnownHeaders } from './known-headers.ts';
import type { LastRead } from './last-read.ts';
import type { PendingResponse } from './response-queue.ts';
import { HEADERS_TIMEOUT_MS, KEEP_ALIVE_MS, LINGER_MS } from './timeouts.ts';

/**
 * What a connection reads. `since` is when the first byte of the request arrived, or a new connection
 * was accepted; ms on the monotonic clock.
 *
 * | state | event | next state | sent |
 * |---|---|---|---|
 * | idle: no byte of the next request; new | whole plain create with a known token | idle | its response |
 * | idle, new | a part of a request | headers or request | |
 * | idle, new | 0.5 s after the stop began, no response pending | lingering | |
 * | idle | the last read of a stop is over | flushing; lingering, after all responses | |
 * | idle, new | an empty line, or its first byte | idle | |
 * | idle | end of input / 66 s unused | lingering, after all responses / closed | |
 * | new: no byte at all | end of input / 10 s | lingering / flushing | 408 |
 * | headers: a part of a header section | end of the header section | as from idle | |
 * | idle, new, headers | a part of a header section, the last read of a stop | flushing | 503 |
 * | headers, request | 1.75 s after the stop began | flushing | 503 |
 * | headers, request | invalid / over 16 KiB / end of input | flushing | 400 / 431 / 400 |
 * | request: the header section of a plain create was read | whole | as from idle | |
 * | headers / request | 10 s / 13 s | flushing | 408 |
 * | any of these | any other valid request | handling | |
 * | handling: its handler works | asks for the body | body | 100, if it is expected |
 * | handling | response, or plant queued | idle; discarded, if the body was not read | response |
 * | body: arrives for the handler | whole | handling | |
 * | body | invalid / over 16 KiB of chunk framing / end of input / 13 s | flushing | 400 / 431 / 400 / 408 |
 * | discarded: the rest of a rejected request | whole | idle | response |
 * | discarded | two ticks, or one after the last read of a stop | flushing | response |
 * | discarded | tick budget spent / invalid / end of input | flushing | response |
 * | idle, headers, new | too many responses pending, or not taken | full | |
 * | full: reading is paused | all are written and taken | as from idle | |
 * | idle, headers, request, new, body | tick budget spent | deferred | |
 * | deferred: reading is paused | later tick | as before | |
 * | after the last request | | flushing: input is discarded | |
 * | flushing | last response written | lingering: our side has ended | |
 * | lingering | client ends its side / 2 s after it has taken all | closed | |
 * | any | client takes nothing of what is written for 10 s | closed | |
 * | any | reset | closed | |
 *
 * The last request is one with `Connection: close`, or after which the service has shut down and no
 * further byte has arrived. The last read of a stop is the first one from 1.5 s after it began. In
 * handling, arriving bytes pause the socket. *Taken* is what the kernel has accepted for the client.
 */
export type State =
  | { kind: 'new'; since: number }
  | { kind: 'idle' }
  /** `scanned` bytes of it may become a header section. */
  | { kind: 'headers'; since: number; scanned: number }
  /**
   * `cameInTime`: the header section arrived before the grace period of a stop ended, so a plant is accepted.
   */
  | { kind: 'request'; since: number; known: KnownHeaders; cameInTime: boolean }
  | Handling
  | Discarding
  | { kind: 'full' }
  | { kind: 'deferred'; next: State }
  | { kind: 'flushing' }
  | { kind: 'lingering' }
  | { kind: 'closed' };

export interface Handling {
  kind: 'handling' | 'body';
  since: number;
  exchange: Exchange;
  pending: PendingResponse;
}

export interface Discarding {
  kind: 'discarded';
  exchange: Exchange;
  pending: PendingResponse;
  response: HttpResponse;
}

export const IDLE: State = { kind: 'idle' };

/** How long a connection may be in a state. The server enforces the timeouts at intervals. */
export const STATE_TIMEOUTS_MS = {
  new: HEADERS_TIMEOUT_MS,
  headers: HEADERS_TIMEOUT_MS,
  request: REQUEST_TIMEOUT_MS,
  body: REQUEST_TIMEOUT_MS,
  /** One second longer than Keep-Alive announces, since a request may be in flight. */
  idle: KEEP_ALIVE_MS + 1_000,
  lingering: LINGER_MS,
};

/**
 * Why a connection may not stay in a state any longer; undefined: it may. `unused`: it is closed
 * without a response.
 *
 * @param unusedSince undefined: responses are pending, or not taken; ms, monotonic clock
 * @param now ms, monotonic clock
 */
export function overdueOf(
  state: State,
  unusedSince: number | undefined,
  lastRead: LastRead,
  now: number,
): 'tooSlow' | 'shuttingDown' | 'unused' | undefined {
  switch (state.kind) {
    case 'new':
    case 'headers':
    case 'request':
      if (now - state.since >= STATE_TIMEOUTS_MS[state.kind]) return 'tooSlow';
      return lastRead.isTooLate(now) ? 'shuttingDown' : undefined;
    case 'body':
      return now - state.since >= STATE_TIMEOUTS_MS.body ? 'tooSlow' : undefined;
    case 'idle':
    case 'lingering': {
      const isUsed = unusedSince === undefined || now - unusedSince < STATE_TIMEOUTS_MS[state.kind];
      return isUsed ? undefined : 'unused';
    }
    default:
      return undefined;
  }
}
