import { failureLog, type ServiceLog } from './rate-limited-log.ts';

/** The collector that gets the spans of sampled requests. */
export interface TraceSettings {
  /** Address to which batches of spans are sent with POST. */
  url: string;
  /** Header fields of these requests. Their values may be secrets. */
  headers: Record<string, string>;
  /** Attributes of the service. */
  resource: Record<string, string>;
  /** `isParentBased`: the caller decides for its requests; `ratio`: the sampled share of all others. */
  sampler: { isParentBased: boolean; ratio: number };
}

/** Spans that wait for the collector. Further spans are dropped. */
const SPANS_MAX = 2_048;
/** Spans in one request to the collector. */
const BATCH_SPANS_MAX = 512;
/** How long spans wait for others of their batch. */
const BATCH_INTERVAL_MS = 1_000;
/** A request to the collector is aborted after this time. */
const EXPORT_TIMEOUT_MS = 10_000;
/** At the stop, the waiting spans must be sent within this time. */
const FLUSH_MS = 1_000;

/**
 * Sends spans to an OpenTelemetry collector: OTLP over HTTP, in JSON
 * (https://opentelemetry.io/docs/specs/otlp/#otlphttp). One request is in flight at a time. A
 * failed batch is dropped and not sent again, so a collector that is away costs no memory.
 */
export class SpanExporter {
  readonly #settings: TraceSettings;
  readonly #attempts: ReturnType<typeof failureLog>;
  /** Each span as JSON, which keeps nothing of the request in memory. */
  #waiting: string[] = [];
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> | undefined;
  readonly #stopped = new AbortController();
  /** Spans that did not reach the collector. */
  dropped = 0;

  constructor(settings: TraceSettings, log: ServiceLog) {
    this.#settings = settings;
    this.#attempts = failureLog(
      details => log.warn(details, 'the trace collector takes no spans; they are dropped until it does'),
      () => log.info('the trace collector takes spans again'),
    );
  }

  /** @param span is called only if there is room */
  add(span: () => object): void {
    if (this.#waiting.length >= SPANS_MAX) {
      this.dropped++;
      return;
    }
    this.#waiting.push(JSON.stringify(span()));
    if (this.#waiting.length >= BATCH_SPANS_MAX) this.#start();
    else this.#timer ??= setTimeout(() => this.#start(), BATCH_INTERVAL_MS);
  }

  /** Sends the waiting spans for up to {@link FLUSH_MS}, then drops the rest. */
  async close(): Promise<void> {
    const timer = setTimeout(() => this.#stopped.abort(), FLUSH_MS);
    this.#start();
    await this.#sending;
    clearTimeout(timer);
  }

  #start(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#sending ??= this.#sendAll().finally(() => (this.#sending = undefined));
  }

  async #sendAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const spans = this.#waiting.splice(0, BATCH_SPANS_MAX);
      try {
        await this.#send(spans);
        this.#attempts.recovered();
      } catch (cause) {
        this.dropped += spans.length;
        this.#attempts.failed(cause);
      }
    }
  }

  async #send(spans: readonly string[]): Promise<void> {
    const { url, headers, resource } = this.#settings;
    const attributes = JSON.stringify(attributesOf(resource));
    const scopeSpans = `[{"scope":{"name":"plant-store"},"spans":[${spans.join(',')}]}]`;
    const response = await fetch(url, {
      method: 'POST',
      headers: { ...headers, 'Content-Type': 'application/json' },
      body: `{"resourceSpans":[{"resource":{"attributes":${attributes}},"scopeSpans":${scopeSpans}}]}`,
      // A redirect would carry the secret header fields elsewhere.
      redirect: 'error',
      signal: AbortSignal.any([this.#stopped.signal, AbortSignal.timeout(EXPORT_TIMEOUT_MS)]),
    });
    await response.body?.cancel();
    if (!response.ok) throw new Error(`the collector responded with status ${response.status}`);
  }
}

/** Attributes in the JSON form of OTLP, without those that are undefined. */
export function attributesOf(values: Record<string, string | number | undefined>): object[] {
  return Object.entries(values)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => ({
      key,
      value: typeof value === 'number' ? { intValue: String(value) } : { stringValue: value },
    }));
}
