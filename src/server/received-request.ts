import type { ReceivedRequest } from '../core/request.ts';
import { traceContextOf } from '../core/trace-context.ts';
import type { KnownHeaders } from './known-headers.ts';
import type { ServerContext } from './server-context.ts';

/** Makes the record of a request whose header section was read. */
export function receivedRequest(
  { tracers }: ServerContext,
  { headers, traceparent }: KnownHeaders,
  arrivedAt: number,
): ReceivedRequest {
  let trace = traceContextOf(traceparent);
  for (const tracer of tracers) trace = tracer.traceOf(trace);
  return { headers, trace, arrivedAt, bodyBytes: 0, body: undefined, tokenId: undefined };
}
