import { REQUEST_TIMEOUT_MS } from '../core/contract/limits.ts';
import type { ConnectionState } from './connection-state.ts';
import type { LastRead } from './last-read.ts';
import { HEADERS_TIMEOUT_MS, KEEP_ALIVE_MS, LINGER_MS } from './timeouts.ts';

/** How long a connection may be in a state. The server enforces the timeouts at intervals. */
export const STATE_TIMEOUTS_MS = {
  new: HEADERS_TIMEOUT_MS,
  headers: HEADERS_TIMEOUT_MS,
  plainBody: REQUEST_TIMEOUT_MS,
  body: REQUEST_TIMEOUT_MS,
  /** One second longer than Keep-Alive announces, since a request may be in flight. */
  idle: KEEP_ALIVE_MS + 1_000,
  lingering: LINGER_MS,
};

/**
 * Why a connection may not stay in a state any longer; undefined if it may. `unused`: it is closed
 * without a response.
 *
 * @param unusedSince undefined: responses are pending, or not taken; ms, monotonic clock
 * @param now ms, monotonic clock
 */
export function overdueOf(
  state: ConnectionState,
  unusedSince: number | undefined,
  lastRead: LastRead,
  now: number,
): 'tooSlow' | 'shuttingDown' | 'unused' | undefined {
  switch (state.kind) {
    case 'new':
    case 'headers':
    case 'plainBody':
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
