import { randomBytes } from 'node:crypto';
import { type TraceContext, traceContextOf } from '../contract/trace-context.ts';
import type { HttpResponse, ReceivedRequest } from '../http/response.ts';
import type { PlantCommits, PlantWrite } from '../store/plant-store.ts';
import { loggedRequest } from './logged-request.ts';
import type { ServiceLog } from './rate-limited-log.ts';
import { attributesOf, SpanExporter, type TraceSettings } from './span-exporter.ts';

/** Other methods are `_OTHER`, so that a client cannot invent names of spans. */
const METHODS = /^(?:CONNECT|DELETE|GET|HEAD|OPTIONS|PATCH|POST|PUT|QUERY|TRACE)$/;
/** The last 13 digits of a trace id are random; they fit into a double. */
const RANDOM_DIGITS = 13;
/** `SpanKind` and `Status.code` of OTLP. */
const KIND = { internal: 1, server: 2 };
const STATUS_ERROR = 2;

/** Makes the spans of sampled requests, and of the commits that they shared. */
export class Tracing {
  readonly exporter: SpanExporter;
  readonly #sampler: TraceSettings['sampler'];

  constructor(settings: TraceSettings, log: ServiceLog) {
    this.exporter = new SpanExporter(settings, log);
    this.#sampler = settings.sampler;
  }

  /** @returns undefined if the request has no trace and begins none */
  readonly contextOf = (traceparent: string | undefined): TraceContext | undefined => {
    const { isParentBased, ratio } = this.#sampler;
    const context = traceContextOf(traceparent);
    if (context === undefined) {
      const isSampled = Math.random() >= 1 - ratio;
      return isSampled ? { traceId: randomId(16), parentId: undefined, isSampled } : undefined;
    }
    // All services of a trace decide by the same digits, so a trace is not cut into pieces.
    if (!isParentBased) {
      const random = Number(`0x${context.traceId.slice(-RANDOM_DIGITS)}`) / 16 ** RANDOM_DIGITS;
      context.isSampled = random >= 1 - ratio;
    }
    return context;
  };

  /** Exports the server span, by the semantic conventions for HTTP (version 1.23 and later). */
  responded(
    response: Omit<HttpResponse, 'body'>,
    request: ReceivedRequest | undefined,
    remoteAddress: string | undefined,
  ): void {
    const { trace, arrivedAt } = request ?? {};
    if (!trace?.isSampled) return;
    this.exporter.add(() => {
      const { method, path, status, result, id } = loggedRequest(response, request, remoteAddress);
      const isKnown = METHODS.test(method!);
      const route = path === '/plants' ? path : undefined;
      return {
        traceId: trace.traceId,
        spanId: randomId(8),
        parentSpanId: trace.parentId,
        name: [isKnown ? method : 'HTTP', route].join(' ').trimEnd(),
        kind: KIND.server,
        ...timesSince(arrivedAt!),
        attributes: attributesOf({
          'http.request.method': isKnown ? method : '_OTHER',
          'http.request.method_original': isKnown ? undefined : method,
          'http.response.status_code': status,
          'http.route': route,
          'url.path': path,
          'url.scheme': 'http',
          'client.address': remoteAddress,
          'error.type': status >= 500 ? String(status) : undefined,
          'plant_store.result': result,
          'plant_store.plant_id': id,
        }),
        links: trace.commit && [trace.commit],
        status: status >= 500 ? { code: STATUS_ERROR } : {},
      };
    });
  }

  /** Wraps `commit`: the span of a batch is a trace of its own, to which its requests link. */
  observed(commit: PlantCommits['commit']): PlantCommits['commit'] {
    return async writes => {
      const beganAt = performance.now();
      const span = { traceId: randomId(16), spanId: randomId(8) };
      if (!linkTraces(writes, span)) return commit(writes);
      const ended = (status: object): void =>
        this.exporter.add(() => ({
          ...span,
          name: 'commit',
          kind: KIND.internal,
          ...timesSince(beganAt),
          attributes: attributesOf({ 'plant_store.batch_plants': writes.length }),
          status,
        }));
      try {
        const results = await commit(writes);
        ended({});
        return results;
      } catch (cause) {
        ended({ code: STATUS_ERROR });
        throw cause;
      }
    };
  }
}

/** @returns whether the batch has a sampled request */
function linkTraces(writes: readonly PlantWrite[], span: TraceContext['commit']): boolean {
  let hasSampled = false;
  for (const { trace } of writes) {
    if (!trace?.isSampled) continue;
    trace.commit = span!;
    hasSampled = true;
  }
  return hasSampled;
}

function randomId(bytes: number): string {
  return randomBytes(bytes).toString('hex');
}

/** @param beganAt ms on the monotonic clock, whose origin is the wall clock at the start */
function timesSince(beganAt: number) {
  const endedAt = performance.now();
  const endedAtMs = Date.now();
  return {
    startTimeUnixNano: nanoseconds(endedAtMs - (endedAt - beganAt)),
    endTimeUnixNano: nanoseconds(endedAtMs),
  };
}

/** A double has no room for nanoseconds since 1970, but for microseconds. */
function nanoseconds(unixMs: number): string {
  return `${Math.round(unixMs * 1000)}000`;
}
