import type { BlockList } from 'node:net';
import type { Clock } from '../core/clock.ts';
import type { ResponseObserver } from '../core/extension-points.ts';
import type { IterationBudget } from '../core/iteration-budget.ts';
import type { ReceivedRequest } from '../core/request.ts';
import type { HandledRequest, HandlerResult } from './handled-request.ts';
import type { LongBodyMemory } from './long-bodies.ts';
import type { HeadersCache } from './parsed-headers.ts';
import type { PlainCreates } from './plain-creates.ts';
import type { ResponseHeaders } from './response-headers.ts';

/**
 * `draining`: the service shuts down, so the last response on each connection closes it.
 * `rejecting`: the grace period is over, so further plants get 503.
 * `closing`: each connection reads once more, and ends after the responses to what was read.
 * `sinceMs` is when this phase began, on the monotonic clock.
 */
export type ServerPhase =
  | { readonly kind: 'running' | 'draining' | 'rejecting' }
  | { readonly kind: 'closing'; readonly sinceMs: number };

export function rejectsPlants({ kind }: ServerPhase): boolean {
  return kind === 'rejecting' || kind === 'closing';
}

/** What the connections of a server share. All else in `src/server` belongs to one connection. */
export interface ServerContext {
  readonly clock: Clock;
  /** Each phase changes what connections do. Only the server sets it. */
  phase: ServerPhase;
  /** Connections of the same client send the same header sections. */
  readonly headersCache: HeadersCache;
  /** They share the time of a tick. */
  readonly plainCreates: PlainCreates;
  /** Handles a request that is no plain create with a known token. */
  readonly handle: (handled: HandledRequest) => Promise<HandlerResult>;
  /** Time per tick for the requests that `handle` handles, and for their bodies. */
  readonly handlerBudget: IterationBudget;
  /** The limit for the memory of long bodies is one for all connections. */
  readonly longBodies: LongBodyMemory;
  /** Called with the cause of each 500 response. */
  readonly onInternalError: (cause: unknown, request: ReceivedRequest) => void;
  /** Makes the header sections of all responses. Those of a second share some fields. */
  readonly responseHeaders: ResponseHeaders;
  /** They see each response. */
  readonly observers: readonly ResponseObserver[];
  /** The proxies whose X-Forwarded-For names the client to observers; undefined: none. */
  readonly trustedProxies: BlockList | undefined;
}
