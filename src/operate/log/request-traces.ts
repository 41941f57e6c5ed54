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
 * Decides in which trace a request is.
 *
 * @param caller the trace that the request names; undefined if it names none
 * @returns undefined if the request belongs to no trace
 */
type Sampler = (caller: TraceContext | undefined) => TraceContext | undefined;

/** Knows in which trace each request is, for log lines and spans. */
export class RequestTraces {
  /** Undefined: a request is in the trace of its caller. */
  #decide: ((request: ReceivedRequest) => TraceContext | undefined) | undefined;
  /** What a sampler decided, so that it decides once for each request. */
  readonly #decided = new WeakMap<ReceivedRequest, TraceContext | undefined>();

  sampleBy(sampler: Sampler): void {
    this.#decide = request => sampler(callerOf(request));
  }

  /** @returns undefined if the request belongs to no trace */
  of(request: ReceivedRequest): TraceContext | undefined {
    if (this.#decide === undefined) return callerOf(request);
    return this.#decided.getOrInsertComputed(request, this.#decide);
  }
}

/** @returns undefined if the field is absent, repeated or malformed: then it is ignored */
function callerOf({ headers }: ReceivedRequest): TraceContext | undefined {
  const values = fieldValues(headers.fields, TRACE_FIELD);
  const match = values.length === 1 ? TRACEPARENT.exec(values[0]!) : null;
  if (match === null) return undefined;
  return { traceId: match[1]!, parentId: match[2], isSampled: Number(`0x${match[3]}`) % 2 === 1 };
}
