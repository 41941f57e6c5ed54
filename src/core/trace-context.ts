/** Where a request belongs in a distributed trace. Ids are in hexadecimal, in lower case. */
export interface TraceContext {
  readonly traceId: string;
  /** The span of the caller; undefined if the trace begins here. */
  readonly parentId: string | undefined;
  /** Whether a span of the request is exported. */
  readonly isSampled: boolean;
}

/** What log lines need of a request. `trace` is undefined if the request belongs to no trace. */
export interface TracedRequest {
  readonly trace: TraceContext | undefined;
}

/** W3C Trace Context, level 1, sections 3.2 and 4.3. Only versions after 00 may be longer. */
const TRACEPARENT =
  /^(?!ff|00.{54})[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-|$)/;

/** @returns undefined if the field is absent or malformed: then it is ignored */
export function traceContextOf(traceparent: string | undefined): TraceContext | undefined {
  const match = traceparent === undefined ? null : TRACEPARENT.exec(traceparent);
  if (match === null) return undefined;
  return { traceId: match[1]!, parentId: match[2], isSampled: Number(`0x${match[3]}`) % 2 === 1 };
}
