/** Where a request belongs in a distributed trace. Ids are in hexadecimal, in lower case. */
export interface TraceContext {
  readonly traceId: string;
  /** The span of the caller; undefined if the trace begins here. */
  readonly parentId: string | undefined;
  /** Whether a span of the request is exported. */
  isSampled: boolean;
  /** The span of the commit that contains the plant; undefined before, or if it is not sampled. */
  commit?: { readonly traceId: string; readonly spanId: string };
}

/** Ids are never all zeros. Version `ff` is invalid, and only later versions have more fields. */
const TRACEPARENT =
  /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/**
 * Reads a `traceparent` field, as W3C Trace Context, level 1, sections 3.2 and 4.3 require.
 *
 * @returns undefined if the field is absent or malformed: then it is ignored
 */
export function traceContextOf(traceparent: string | undefined): TraceContext | undefined {
  if (traceparent === undefined) return undefined;
  const [, version, traceId, parentId, flags, rest] = TRACEPARENT.exec(traceparent) ?? [];
  if (traceId === undefined || (version === '00' && rest !== undefined)) return undefined;
  return { traceId, parentId, isSampled: (Number(`0x${flags}`) & 1) === 1 };
}
