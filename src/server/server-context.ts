import type { Socket } from 'node:net';
import type { CreatePlant } from '../core/create-plant.ts';
import type { HeaderFields } from '../core/header-fields.ts';
import type { ReceivedRequest } from '../core/request.ts';
import type { HttpResponse } from '../core/response.ts';
import type { TraceContext } from '../core/trace-context.ts';
import type { AllowedOrigins } from './cross-origin.ts';

/** The responses to GET requests, by path. */
export type Documentation = ReadonlyMap<string, HttpResponse>;

/**
 * `draining`: the service shuts down, so the last response on each connection closes it.
 * `rejecting`: the grace period is over, so further plants get 503.
 * `ending`: each connection reads once more, and ends after the responses to what was read. `sinceMs`
 * is when this phase began, on the monotonic clock.
 */
export type ServerPhase =
  | { readonly kind: 'running' | 'draining' | 'rejecting' }
  | { readonly kind: 'ending'; readonly sinceMs: number };

export function rejectsPlants({ kind }: ServerPhase): boolean {
  return kind === 'rejecting' || kind === 'ending';
}

export interface ResponseMark {
  fields: HeaderFields;
  /** Is called when the client has taken the response. @param isClientThere it has not ended its side */
  onTaken: (isClientThere: boolean) => void;
}

/** Shared by all connections of the server. */
export interface ServerContext {
  readonly createPlant: CreatePlant;
  /** It is undefined if pages of other origins may not use the service. */
  readonly corsOrigins: AllowedOrigins | undefined;
  /** Error responses link to it. It is undefined if the service has none. */
  readonly documentation: Documentation | undefined;
  /** Set in a sandbox, where every request has a handler. Its fields mark each response. */
  readonly mark?: (response: HttpResponse<string | Uint8Array>) => ResponseMark;
  /** Is called with the only `traceparent` of each request. */
  readonly traceContextOf: (traceparent: string | undefined) => TraceContext | undefined;
  /** Is called with the cause of each 500 response. */
  readonly onInternalError: (cause: unknown, request: ReceivedRequest) => void;
  /** Is called with each written response; `request` is undefined if the bytes were no request. */
  readonly onResponse: (
    response: HttpResponse<string | Uint8Array>,
    request: ReceivedRequest | undefined,
    socket: Socket,
  ) => void;
  phase: ServerPhase;
}
