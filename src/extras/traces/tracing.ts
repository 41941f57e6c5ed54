import { randomBytes } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { Counter, type Registry } from 'prom-client';
import type { PlantWrite } from '../../core/commit/plant-commits.ts';
import type { ResponseObserver, Tracer } from '../../core/extension-points.ts';
import type { ReceivedRequest } from '../../core/request.ts';
import type { HttpResponse } from '../../core/response.ts';
import type { TraceContext } from '../../core/trace-context.ts';
import { clientText, loggedRequest } from '../../operate/logged-request.ts';
import { failureLog, type ServiceLog } from '../../operate/rate-limited-log.ts';

/** `resource` has the attributes of the service. The values of `headers` may be secrets. */
export interface TraceSettings {
  url: string;
  headers: Record<string, string>;
  /** After this time, a request to the collector is aborted. */
  timeoutMs: number;
  resource: Record<string, string>;
  /** Whether the caller decides about its requests. `ratio` is the sampled share of all others. */
  isParentBased: boolean;
  ratio: number;
}

/** Spans that wait for the next request to the collector. Further spans are dropped. */
const SPANS_MAX = 2_048;
/** Shortest interval between two requests to the collector. The next one waits for a slow one. */
const EXPORT_INTERVAL_MS = 1_000;
/** At the stop, timeout of a request in flight, and then of the last request. */
const STOP_TIMEOUT_MS = 1_000;
/** The methods that are known by the semantic conventions for HTTP. */
const METHODS = new Set('CONNECT DELETE GET HEAD OPTIONS PATCH POST PUT QUERY TRACE'.split(' '));
/** A host and its port, which may be absent or empty. */
const HOST = /^(?:\[(.+)\]|([^:]+))(?::(\d{0,5}))?$/;
const FAILURE_LOG_RATE = { burstLines: 1, intervalMs: 60_000 };

/** Makes the spans of sampled requests, by the semantic conventions for HTTP, and of their commits. */
export class Tracing implements Tracer, ResponseObserver {
  readonly #settings: TraceSettings;
  readonly #exporter: Exporter;
  /** The span of the commit of a plant, by the trace of its request. */
  readonly #commits = new WeakMap<TraceContext, SpanIds>();

  /** @param registry gets a metric of the spans that are lost */
  constructor(settings: TraceSettings, registry: Registry, log: ServiceLog) {
    this.#settings = settings;
    this.#exporter = startExporter(settings, log);
    const { dropped } = this.#exporter;
    new Counter({
      name: 'plant_store_spans_dropped_total',
      help: 'Spans that did not reach the collector of traces.',
      registers: [registry],
      collect() {
        this.reset();
        this.inc(dropped());
      },
    });
  }

  /** Decides whether a request is sampled. A request without a trace may begin a trace. */
  traceOf(caller: TraceContext | undefined): TraceContext | undefined {
    const { isParentBased, ratio } = this.#settings;
    if (caller === undefined) {
      if (Math.random() >= ratio) return undefined;
      return { traceId: randomId(16), parentId: undefined, isSampled: true };
    }
    if (isParentBased) return caller;
    // The last 13 digits are random. Services with the same ratio sample the same traces.
    const isSampled = Number(`0x${caller.traceId.slice(-13)}`) >= 16 ** 13 * (1 - ratio);
    return { ...caller, isSampled };
  }

  /** The span of a commit is a trace of its own, to which its requests link. */
  committing(writes: readonly PlantWrite[]): (() => void) | undefined {
    const traces = writes.flatMap(({ trace }) => (trace?.isSampled ? [trace] : []));
    if (traces.length === 0) return undefined;
    const beganAt = performance.now();
    const ids = { traceId: randomId(16), spanId: randomId(8) };
    for (const trace of traces) this.#commits.set(trace, ids);
    const attributes = attributesOf({ 'plant_store.batch_plants': writes.length });
    return () => this.#exporter.add(beganAt, { ...ids, name: 'commit', kind: 1, attributes });
  }

  responded(
    response: HttpResponse,
    request: ReceivedRequest | undefined,
    durationMs: number,
    addressOf: () => string | undefined,
  ): void {
    if (!request?.trace?.isSampled) return;
    const { traceId, parentId } = request.trace;
    const commit = this.#commits.get(request.trace);
    const remoteAddress = addressOf();
    const logged = loggedRequest(response, request, durationMs, remoteAddress);
    const { method = '', path, status, result, id } = logged;
    const isKnown = METHODS.has(method);
    const nameStart = isKnown ? method : 'HTTP';
    const route = path === '/plants' ? path : undefined;
    const isError = status >= 500;
    this.#exporter.add(request.arrivedAt, {
      traceId,
      spanId: randomId(8),
      parentSpanId: parentId,
      links: commit && [commit],
      name: route ? `${nameStart} ${route}` : nameStart,
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
    });
  }

  /** Sends the last spans. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.#exporter[Symbol.asyncDispose]();
  }
}

interface SpanIds {
  traceId: string;
  spanId: string;
}

type Exporter = ReturnType<typeof startExporter>;

/** Sends spans by OTLP over HTTP, in JSON. A failed request is not repeated. */
function startExporter({ url, headers, timeoutMs, resource }: TraceSettings, log: ServiceLog) {
  const { origin, pathname } = new URL(url);
  // The query of a URL may contain a secret.
  const collector = `the trace collector at ${origin}${pathname}`;
  const exports = failureLog(
    details => log.warn(details, `${collector} takes no spans; they are dropped until it does`),
    () => log.info(`${collector} takes spans again`),
    FAILURE_LOG_RATE,
  );
  const service = { attributes: attributesOf(resource) };
  const waiting: object[] = [];
  let dropped = 0;
  const send = async (limitMs: number, signal?: AbortSignal): Promise<void> => {
    const spans = waiting.splice(0);
    if (spans.length === 0) return;
    const timeout = AbortSignal.timeout(limitMs);
    const scopeSpans = [{ scope: { name: 'plant-store' }, spans }];
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers: { ...headers, 'Content-Type': 'application/json' },
        body: JSON.stringify({ resourceSpans: [{ resource: service, scopeSpans }] }),
        // A redirect would send the secret header fields to another server.
        redirect: 'error',
        signal: signal === undefined ? timeout : AbortSignal.any([timeout, signal]),
      });
      await response.body?.cancel();
      if (!response.ok) throw new Error(`the collector responded with status ${response.status}`);
      exports.recovered();
    } catch (cause) {
      dropped += spans.length;
      // A DOMException would put all its constants into the log.
      exports.failed(timeout.aborted ? new Error(`no response within ${limitMs} ms`) : cause);
    }
  };
  const [stopping, late] = [new AbortController(), new AbortController()];
  const { signal } = stopping;
  const nextInterval = () => wait(EXPORT_INTERVAL_MS, undefined, { signal }).catch(() => {});
  const sendUntilStop = async (): Promise<void> => {
    while (!signal.aborted) {
      await Promise.all([send(timeoutMs, late.signal), nextInterval()]);
    }
  };
  const stopped = sendUntilStop();
  return {
    dropped: () => dropped,
    /** @param beganAt ms on the monotonic clock */
    add(beganAt: number, span: object): void {
      const end = Date.now();
      const start = end - (performance.now() - beganAt);
      // A double holds microseconds since 1970 exactly, but not nanoseconds.
      const [startTimeUnixNano, endTimeUnixNano] = [start, end].map(ms => `${Math.round(ms * 1000)}000`);
      if (waiting.length >= SPANS_MAX) dropped++;
      else waiting.push({ ...span, startTimeUnixNano, endTimeUnixNano });
    },
    async [Symbol.asyncDispose](): Promise<void> {
      stopping.abort();
      const timer = setTimeout(() => late.abort(new Error('the service stops')), STOP_TIMEOUT_MS);
      await stopped;
      clearTimeout(timer);
      await send(Math.min(timeoutMs, STOP_TIMEOUT_MS));
    },
  };
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

/** Attributes in the JSON form of OTLP, without those that are undefined. ProtoJSON has int64 as text. */
function attributesOf(values: Record<string, string | number | undefined>): object[] {
  return Object.entries(values).flatMap(([key, value]) => {
    if (value === undefined) return [];
    return [{ key, value: typeof value === 'number' ? { intValue: String(value) } : { stringValue: value } }];
  });
}

const randomId = (bytes: number): string => randomBytes(bytes).toString('hex');
