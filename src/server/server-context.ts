import type { BlockList } from 'node:net';
import type { CreatePlant } from '../core/create-plant.ts';
import type { ResponseObserver, Tracer } from '../core/extension-points.ts';
import type { ReceivedRequest } from '../core/request.ts';
import type { HttpResponse } from '../core/response.ts';
import type { AllowedOrigins } from './cross-origin.ts';
import type { HelpFields, ResponseHeaders } from './response-headers.ts';

/** The pages of a service, and the links to them. */
export interface Documentation {
  /** The responses to GET requests, by path. */
  readonly pages: ReadonlyMap<string, HttpResponse>;
  readonly helpFields: HelpFields;
}

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
  /** Undefined: the service has no pages, and its error responses have no links. */
  readonly documentation: Documentation | undefined;
  /** Makes the header sections of all responses. */
  readonly responseHeaders: ResponseHeaders;
  readonly tracers: readonly Tracer[];
  readonly observers: readonly ResponseObserver[];
  /** The proxies whose X-Forwarded-For names the client; undefined: none. */
  readonly trustedProxies: BlockList | undefined;
  /** Called with the cause of each 500 response. */
  readonly onInternalError: (cause: unknown, request: ReceivedRequest) => void;
  phase: ServerPhase;
}
