import type { ReceivedRequest } from '../core/request.ts';
import { traceContextOf } from '../core/trace-context.ts';
import type { KnownHeaders } from './known-headers.ts';
import type { ServerContext } from './server-context.ts';

/** Makes the record of a request whose header section was read, and shows it to the observers. */
export function receivedRequest(
  { receivers }: ServerContext,
  { headers, traceparent }: KnownHeaders,
  arrivedAt: number,
): ReceivedRequest {
  const request: ReceivedRequest = {
    headers,
    trace: traceContextOf(traceparent),
    arrivedAt,
    bodyBytes: 0,
    body: undefined,
    tokenId: undefined,
  };
  for (const observer of receivers) observer.received?.(request);
  return request;
}
