import type { BlockList } from 'node:net';
import type { CreatePlant } from '../core/create-plant.ts';
import type { Attached, ResponseObserver } from '../core/extension-points.ts';
import type { ReceivedRequest } from '../core/request.ts';
import type { HttpResponse } from '../core/response.ts';
import type { AllowedOrigins } from './cross-origin.ts';
import type { ResponseHeaders } from './response-headers.ts';

/** The responses to GET requests, by path. */
export type Documentation = ReadonlyMap<string, HttpResponse>;

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

/** Shared by all connections of the server. */
export interface ServerContext {
  readonly createPlant: CreatePlant;
  /** Origins whose pages may use the service; undefined: only the own origin. */
  readonly corsOrigins: AllowedOrigins | undefined;
  /** The pages to which error responses link; undefined: the service has none. */
  readonly documentation: Documentation | undefined;
  /** Makes the header sections of all responses. */
  readonly responseHeaders: ResponseHeaders;
  /** Observers of requests and responses, and wrappers that add fields to responses. */
  readonly attached: Pick<Attached, 'observers' | 'wrappers'>;
  /** Those observers that see a request before its response. Usually there are none. */
  readonly receivers: readonly ResponseObserver[];
  /** The proxies whose X-Forwarded-For names the client; undefined: none. */
  readonly trustedProxies: BlockList | undefined;
  /** Called with the cause of each 500 response. */
  readonly onInternalError: (cause: unknown, request: ReceivedRequest) => void;
  phase: ServerPhase;
}
