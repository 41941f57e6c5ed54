import { setTimeout as sleep } from 'node:timers/promises';
import { type FailureLog, failureLog, type ServiceLog } from '../../operate/log/rate-limited-log.ts';
import { type Attributes, attributesOf } from './otlp-attributes.ts';
import type { TraceSettings } from './trace-settings.ts';

/** Spans that wait for the next request to the collector. Further spans are dropped. */
const SPANS_MAX = 2_048;
/** Shortest interval between two requests to the collector. A slow request delays the next one. */
const EXPORT_INTERVAL_MS = 1_000;
/** At the shutdown, timeout of a request in flight, and then of the last request. */
const SHUTDOWN_TIMEOUT_MS = 1_000;
const FAILURE_LOG_RATE = { burstLines: 1, intervalMs: 60_000 };

/** The ids of a span, in hexadecimal digits. */
export interface SpanIds {
  traceId: string;
  spanId: string;
}

/** A span in the JSON form of OTLP, without its times. */
export interface Span extends SpanIds {
  name: string;
  /** 1: internal, 2: server. */
  kind: 1 | 2;
  attributes: Attributes;
  parentSpanId?: string | undefined;
  links?: SpanIds[] | undefined;
  /** 2: error. */
  status?: { code?: 2 };
}

/** Sends spans by OTLP over HTTP, in JSON. A failed request is not repeated. */
export class SpanExporter implements AsyncDisposable {
  readonly #settings: TraceSettings;
  readonly #failures: FailureLog;
  readonly #waiting: object[] = [];
  #dropped = 0;
  /** Aborted when the service shuts down, so that the interval ends. */
  readonly #shutdown = new AbortController();
  /** Aborted some time after that, so that the request in flight ends. */
  readonly #shutdownTimeout = new AbortController();
  /** Settles after the shutdown has begun, and after the request in flight. */
  readonly #ended: Promise<void>;

  constructor(settings: TraceSettings, log: ServiceLog) {
    this.#settings = settings;
    const { origin, pathname } = new URL(settings.url);
    // The query of a URL may contain a secret.
    const collector = `the trace collector at ${origin}${pathname}`;
    this.#failures = failureLog(
      details => log.warn(details, `${collector} takes no spans; they are dropped until it does`),
      () => log.info(`${collector} takes spans again`),
      FAILURE_LOG_RATE,
    );
    this.#ended = this.#sendUntilShutdown();
  }

  /** How many spans did not reach the collector. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Adds a span. The times are ms on the monotonic clock. */
  add(span: Span, beganAt: number, endedAt: number): void {
    if (this.#waiting.length >= SPANS_MAX) {
      this.#dropped++;
      return;
    }
    const wallAheadMs = Date.now() - performance.now();
    this.#waiting.push({
      ...span,
      startTimeUnixNano: nanosecondsText(beganAt + wallAheadMs),
      endTimeUnixNano: nanosecondsText(endedAt + wallAheadMs),
    });
  }

  /** Sends the last spans. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#shutdown.abort();
    const timer = setTimeout(
      () => this.#shutdownTimeout.abort(new Error('the service shuts down')),
      SHUTDOWN_TIMEOUT_MS,
    );
    await this.#ended;
    clearTimeout(timer);
    await this.#send(Math.min(this.#settings.timeoutMs, SHUTDOWN_TIMEOUT_MS));
  }

  async #sendUntilShutdown(): Promise<void> {
    const { signal } = this.#shutdown;
    while (!signal.aborted) {
      const interval = sleep(EXPORT_INTERVAL_MS, undefined, { signal }).catch(() => {});
      await Promise.all([this.#send(this.#settings.timeoutMs, this.#shutdownTimeout.signal), interval]);
    }
  }

  /** Sends all spans that wait. It never throws. */
  async #send(timeoutMs: number, signal?: AbortSignal): Promise<void> {
    const spans = this.#waiting.splice(0);
    if (spans.length === 0) return;
    const { url, headers, resource } = this.#settings;
    const timeout = AbortSignal.timeout(timeoutMs);
    const scopeSpans = [{ scope: { name: 'plant-store' }, spans }];
    const resourceSpans = [{ resource: { attributes: attributesOf(resource) }, scopeSpans }];
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers: { ...headers, 'Content-Type': 'application/json' },
        body: JSON.stringify({ resourceSpans }),
        // A redirect would send the secret header fields to another server.
        redirect: 'error',
        signal: signal === undefined ? timeout : AbortSignal.any([timeout, signal]),
      });
      await response.body?.cancel();
      if (!response.ok) throw new Error(`the collector responded with status ${response.status}`);
      this.#failures.recovered();
    } catch (cause) {
      this.#dropped += spans.length;
      // The DOMException of a timeout would put all its constants into the log.
      this.#failures.failed(timeout.aborted ? new Error(`no response within ${timeoutMs} ms`) : cause);
    }
  }
}

/** A double holds microseconds since 1970 exactly, but not nanoseconds. */
function nanosecondsText(ms: number): string {
  return `${Math.round(ms * 1000)}000`;
}
