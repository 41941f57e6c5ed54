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
