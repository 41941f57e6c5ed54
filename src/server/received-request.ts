import type { Tracer } from '../core/extension-points.ts';
import type { ReceivedRequest } from '../core/request.ts';
import type { TraceContext } from '../core/trace-context.ts';
import type { ParsedHeaders } from './parsed-headers.ts';

/** Makes the record of a request whose header section was read. */
export function receivedRequest(
  tracers: readonly Tracer[],
  { headers, traceparent }: ParsedHeaders,
  arrivedAt: number,
): ReceivedRequest {
  let trace = traceContextOf(traceparent);
  for (const tracer of tracers) trace = tracer.traceOf(trace);
  return { headers, trace, arrivedAt, bodyBytes: 0, body: undefined, tokenId: undefined };
}

/** W3C Trace Context, level 1, sections 3.2 and 4.3. Only versions after 00 may be longer. */
const TRACEPARENT =
  /^(?!ff|00.{54})[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-|$)/;

/** @returns undefined if the field is absent or malformed: then it is ignored */
function traceContextOf(traceparent: string | undefined): TraceContext | undefined {
  const match = traceparent === undefined ? null : TRACEPARENT.exec(traceparent);
  if (match === null) return undefined;
  return { traceId: match[1]!, parentId: match[2], isSampled: Number(`0x${match[3]}`) % 2 === 1 };
}
