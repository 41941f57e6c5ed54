import { randomBytes } from 'node:crypto';
import { Counter, type Registry } from 'prom-client';
import type { PlantWrite } from '../../core/commit/plant-commits.ts';
import type { ResponseObserver, TraceSource } from '../../core/extension-points.ts';
import type { ReceivedRequest } from '../../core/request.ts';
import type { HttpResponse } from '../../core/response.ts';
import { clientText, loggedRequest } from '../../operate/log/logged-request.ts';
import type { ServiceLog } from '../../operate/log/rate-limited-log.ts';
import { callerTrace, type TraceContext } from '../../operate/log/request-traces.ts';
import { attributesOf } from './otlp-attributes.ts';
import { type Span, SpanExporter, type SpanIds } from './span-exporter.ts';
import type { TraceSettings } from './trace-settings.ts';

/** The methods that the semantic conventions for HTTP know. */
const METHODS = new Set('CONNECT DELETE GET HEAD OPTIONS PATCH POST PUT QUERY TRACE'.split(' '));
/** An IPv6 address in brackets or another host, then a port, which may be absent or empty. */
const HOST = /^(?:\[(.+)\]|([^:]+))(?::(\d{0,5}))?$/;

/** A batch. Its commit has a span if one of its requests is sampled. */
interface EndedBatch {
  plants: number;
  /** Times are ms on the monotonic clock. */
  beganAt: number;
  endedAt: number;
  span: SpanIds | undefined;
}

/** Makes spans of sampled requests, by the semantic conventions for HTTP, and of their commits. */
export class Tracing implements ResponseObserver, TraceSource {
  readonly #settings: TraceSettings;
  readonly #exporter: SpanExporter;
  /** So that each request is sampled once. */
  readonly #traces = new WeakMap<ReceivedRequest, TraceContext | undefined>();
  /** The batch of a plant, by its request. */
  readonly #batches = new WeakMap<object, EndedBatch>();

  /** @param registry gets a metric of the spans that are lost */
  constructor(settings: TraceSettings, registry: Registry, log: ServiceLog) {
    this.#settings = settings;
    const exporter = new SpanExporter(settings, log);
    this.#exporter = exporter;
    new Counter({
      name: 'plant_store_spans_dropped_total',
      help: 'Spans that did not reach the collector of traces.',
      registers: [registry],
      collect() {
        this.reset();
        this.inc(exporter.dropped);
      },
    });
  }

  traceIdOf(request: ReceivedRequest): string | undefined {
    return this.#traceOf(request)?.traceId;
  }

  batchEnded(writes: readonly PlantWrite[], beganAt: number): void {
    const batch = { plants: writes.length, beganAt, endedAt: performance.now(), span: undefined };
    for (const { origin } of writes) if (origin !== undefined) this.#batches.set(origin, batch);
  }

  /** Makes the span of a request, if it is sampled. */
  responded(
    response: HttpResponse,
    request: ReceivedRequest | undefined,
    durationMs: number,
    addressOf: (request: ReceivedRequest) => string | undefined,
  ): void {
    if (request === undefined) return;
    const trace = this.#traceOf(request);
    if (!trace?.isSampled) return;
    const { traceId, parentId } = trace;
    const commit = this.#commitOf(request);
    const remoteAddress = addressOf(request);
    const logged = loggedRequest(response, request, durationMs, remoteAddress);
    const { method = '', path, status, result, id } = logged;
    const isKnown = METHODS.has(method);
    const shownMethod = isKnown ? method : 'HTTP';
    const route = path === '/plants' ? path : undefined;
    const isError = status >= 500;
    const span: Span = {
      traceId,
      spanId: randomId(8),
      parentSpanId: parentId,
      links: commit && [commit],
      name: route === undefined ? shownMethod : `${shownMethod} ${route}`,
      kind: 2,
      status: isError ? { code: 2 } : {},
      attributes: attributesOf({
        'http.request.method': isKnown ? method : '_OTHER',
        'http.request.method_original': isKnown ? undefined : method,
        'http.response.status_code': status,
        'http.route': route,
        ...fieldAttributes(request),
        'url.path': path,
        'url.scheme': 'http',
        'client.address': remoteAddress,
        'error.type': isError ? result : undefined,
        'plant_store.result': result,
        'plant_store.plant_id': id,
      }),
    };
    this.#exporter.add(span, request.arrivedAt, performance.now());
  }

  /** @returns undefined if the request belongs to no trace */
  #traceOf(request: ReceivedRequest): TraceContext | undefined {
    return this.#traces.getOrInsertComputed(request, this.#sample);
  }

  /** Decides whether a request is sampled. A request without a trace may begin a trace. */
  readonly #sample = (request: ReceivedRequest): TraceContext | undefined => {
    const { isParentBased, ratio } = this.#settings;
    const caller = callerTrace(request);
    if (caller === undefined) {
      if (Math.random() >= ratio) return undefined;
      return { traceId: randomId(16), parentId: undefined, isSampled: true };
    }
    if (isParentBased) return caller;
    // The last 13 digits are random. Services with the same ratio sample the same traces.
    const isSampled = Number(`0x${caller.traceId.slice(-13)}`) >= 16 ** 13 * (1 - ratio);
    return { ...caller, isSampled };
  };

  /**
   * The span of the commit of a sampled request, which links to it. The first such request of a batch
   * makes the span. It is a trace of its own.
   */
  #commitOf(request: ReceivedRequest): SpanIds | undefined {
    const batch = this.#batches.get(request);
    if (batch === undefined || batch.span !== undefined) return batch?.span;
    const { plants, beganAt, endedAt } = batch;
    const ids = { traceId: randomId(16), spanId: randomId(8) };
    batch.span = ids;
    const attributes = attributesOf({ 'plant_store.batch_plants': plants });
    this.#exporter.add({ ...ids, name: 'commit', kind: 1, attributes }, beganAt, endedAt);
    return ids;
  }

  /** Sends the last spans. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.#exporter[Symbol.asyncDispose]();
  }
}

/** Makes attributes from header fields. A client may send any text in them. */
function fieldAttributes({ headers: { host = '', userAgent } }: ReceivedRequest) {
  const [, bracketed, name, port] = HOST.exec(host) ?? [];
  const address = bracketed ?? name;
  return {
    'server.address': address && clientText(address),
    'server.port': port ? Number(port) : undefined,
    'user_agent.original': userAgent && clientText(userAgent),
  };
}

const randomId = (bytes: number): string => randomBytes(bytes).toString('hex');
