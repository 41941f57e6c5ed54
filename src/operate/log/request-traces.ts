import type { TraceSource } from '../../core/extension-points.ts';
import { fieldValues } from '../../core/header-fields.ts';
import type { ReceivedRequest } from '../../core/request.ts';

/** The header field that names the trace of a caller (W3C Trace Context), in lower case. */
export const TRACE_FIELD = 'traceparent';

/** W3C Trace Context, level 1, sections 3.2 and 4.3. Only versions after 00 may be longer. */
const TRACEPARENT =
  /^(?!ff|00.{54})[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-|$)/;

/** Where a request belongs in a distributed trace. Ids are in hexadecimal, in lower case. */
export interface TraceContext {
  readonly traceId: string;
  /** The span of the caller; undefined if the trace begins here. */
  readonly parentId: string | undefined;
  /** Whether a span of the request is exported. */
  readonly isSampled: boolean;
}

/**
 * The trace that a request names.
 *
 * @returns undefined if the field is absent, repeated or malformed: then it is ignored
 */
export function callerTrace({ headers }: ReceivedRequest): TraceContext | undefined {
  const values = fieldValues(headers.fields, TRACE_FIELD);
  const match = values.length === 1 ? TRACEPARENT.exec(values[0]!) : null;
  if (match === null) return undefined;
  return { traceId: match[1]!, parentId: match[2], isSampled: Number(`0x${match[3]}`) % 2 === 1 };
}

/** Returns the trace in which log lines put a request; undefined if it belongs to none. */
export type TraceIdOf = (request: ReceivedRequest) => string | undefined;

/**
 * The trace in which log lines put a request: that of the first source with one, or else that of the caller.
 *
 * @returns undefined if the request belongs to no trace
 */
export function loggedTraceId(request: ReceivedRequest, sources: readonly TraceSource[]): string | undefined {
  for (const source of sources) {
    const traceId = source.traceIdOf(request);
    if (traceId !== undefined) return traceId;
  }
  return callerTrace(request)?.traceId;
}
