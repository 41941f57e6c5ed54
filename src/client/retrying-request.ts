import { ERRORS } from '../contract/errors.ts';
import { type NewPlant, newPlantJson } from '../contract/plant.ts';
import { RETRY_AFTER_MAX_MS, RETRY_DELAY_MAX_MS, RETRY_DELAY_MIN_MS } from './limits.ts';
import { errorAfterUnknown, mayHaveStored, PlantStoreError } from './plant-store-error.ts';
import { readStoredPlant, type StoredPlant } from './stored-plant.ts';
import { type HttpRequest, type HttpResponse, isProtocolError, type Transport } from './transport.ts';
import { untrustedCertificate } from './untrusted-certificate.ts';

/** Bytes of a response with its headers, beside the plant that it repeats. Far more than needed. */
const RESPONSE_BYTES_MAX = 64 * 1024;
/** Bytes of one character of a plant in a response: JSON may write it as `\u0000`. */
const RESPONSE_BYTES_PER_CHARACTER = 6;

/** Where plants are sent, and for how long. */
export interface Service {
  transport: Transport;
  /** Address of `POST /plants`. */
  url: string;
  headers: HttpRequest['headers'];
  responseTimeoutMs: number;
  retryForMs: number;
  /** The requests that wait for a response. */
  requests: Set<RetryingRequest>;
  isClosed: boolean;
}

/** State that the plants of one call share. */
export interface Call {
  /** Called for each failed attempt that will be repeated. What it throws ends the request. */
  readonly onRetry?: ((error: PlantStoreError) => void) | undefined;
  /** When the last plant was stored or rejected, by `performance.now()`; 0 before. */
  lastSettledMs: number;
}

/** Attempts per plant after these errors. For other transient errors, time is the only limit. */
const ATTEMPTS_MAX = new Map<number | undefined, number>([
  [ERRORS.internal.number, 10],
  // A gateway truncates the client's requests.
  [ERRORS.badHttp.number, 5],
]);

/** Sends one plant, and repeats the request after transient errors. */
export class RetryingRequest {
  readonly #service: Service;
  readonly #call: Call;
  readonly #plant: NewPlant;
  #stopped: { reason: unknown } | undefined;
  /** Ends the last attempt. */
  #abandonPost: ((reason: unknown) => void) | undefined;
  /** Ends the delay before the next attempt. */
  #wake: (() => void) | undefined;

  constructor(service: Service, call: Call, plant: NewPlant) {
    this.#service = service;
    this.#call = call;
    this.#plant = plant;
  }

  /**
   * Resolves when the plant is stored. `retryForMs` counts from the first attempt. It starts again
   * whenever another plant of the call is stored or rejected, since the service then responds.
   *
   * @throws {PlantStoreError} when the plant is rejected, or not confirmed in time
   * @throws the reason of `stop` or `abandon`, and what `onRetry` throws
   */
  async run(): Promise<StoredPlant> {
    const startMs = performance.now();
    let isUnknown = false;
    let countedAttempts = 0;
    for (let attempts = 1; ; attempts++) {
      this.#throwIfStopped();
      try {
        return await this.#post();
      } catch (error) {
        if (!(error instanceof PlantStoreError)) throw error;
        const attemptsMax = ATTEMPTS_MAX.get(error.error);
        if (attemptsMax !== undefined) countedAttempts++;
        const delayMs = retryDelayMs(attempts, error.retryAfterMs);
        const endMs = Math.max(startMs, this.#call.lastSettledMs) + this.#service.retryForMs;
        if (!error.canRetry || countedAttempts === attemptsMax || performance.now() + delayMs > endMs)
          throw isUnknown ? errorAfterUnknown(error) : error;
        isUnknown ||= mayHaveStored(error);
        this.#throwIfStopped();
        this.#call.onRetry?.(error);
        await this.#sleep(delayMs);
      }
    }
  }

  /** Begins no further attempt. The request in flight may still get its response. */
  stop(reason: unknown): void {
    this.#stopped ??= { reason };
    this.#wake?.();
  }

  /** Also gives up the request in flight. */
  abandon(reason: unknown): void {
    this.stop(reason);
    this.#abandonPost?.(reason);
  }

  #throwIfStopped(): void {
    if (this.#service.isClosed) throw closedError();
    if (this.#stopped !== undefined) throw this.#stopped.reason;
  }

  /** Sends one attempt. Rejects by itself, since the caller's `fetch` may ignore its signal. */
  async #post(): Promise<StoredPlant> {
    const { transport, url, headers, responseTimeoutMs, requests } = this.#service;
    const body = newPlantJson(this.#plant);
    const responseBytesMax = RESPONSE_BYTES_MAX + RESPONSE_BYTES_PER_CHARACTER * body.length;
    const sent = transport({ url, headers, body, responseBytesMax });
    const response = new Promise<HttpResponse>((resolve, reject) => {
      this.#abandonPost = reason => {
        reject(reason);
        sent.abort();
      };
      sent.response.then(resolve, cause => reject(noResponseError(url, cause)));
    });
    const timeout = (): void => this.#abandonPost?.(timeoutError(url, responseTimeoutMs));
    const timer = setTimeout(timeout, responseTimeoutMs);
    requests.add(this);
    try {
      return readStoredPlant(this.#plant, await response);
    } finally {
      requests.delete(this);
      clearTimeout(timer);
    }
  }

  async #sleep(ms: number): Promise<void> {
    // The `onRetry` callback may have stopped the request.
    if (this.#stopped !== undefined) return;
    await new Promise<void>(resolve => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

/** The error of all plants of a client that was closed. */
export function closedError(): PlantStoreError {
  return new PlantStoreError('the client was closed', { code: 'ECONNABORTED', canRetry: false });
}

function timeoutError(url: string, ms: number): PlantStoreError {
  return new PlantStoreError(`no response from ${url} within ${ms} ms`, {
    code: 'ETIMEDOUT',
    canRetry: true,
  });
}

function noResponseError(url: string, cause: unknown): PlantStoreError {
  const code = codeOf(cause);
  const untrusted = untrustedCertificate(url, code);
  if (untrusted !== undefined) return new PlantStoreError(untrusted, { code, canRetry: false, cause });
  const tls = url.startsWith('https:') ? ' over TLS' : '';
  const why = isProtocolError(code)
    ? `; the server did not respond with HTTP${tls} (${code}); check the address`
    : `${code === undefined ? '' : ` (${code})`}; is the service running there?`;
  return new PlantStoreError(`no response from ${url}${why}`, { code, canRetry: true, cause });
}

/** Node's fetch throws a TypeError whose cause is the network error. Bun throws that one itself. */
function codeOf(error: unknown): string | undefined {
  const { cause } = Object(error) as { cause?: unknown };
  const errors = [Object(cause), Object(error)] as { code?: unknown; name?: unknown }[];
  if (errors.some(({ name }) => name === 'HTTPParserError')) return 'EPROTO';
  const found = errors.map(({ code }) => code).find(code => typeof code === 'string');
  // The name that undici, and so Node's fetch, has for a connection that the server closed.
  return found === 'UND_ERR_SOCKET' ? 'ECONNRESET' : found;
}

/**
 * @param attempts how many attempts have failed
 * @param retryAfterMs from the header Retry-After
 * @returns the delay before the next attempt
 */
function retryDelayMs(attempts: number, retryAfterMs: number): number {
  const backoffMs = Math.min(RETRY_DELAY_MAX_MS, RETRY_DELAY_MIN_MS * 2 ** (attempts - 1));
  // Random jitter, so that plants rejected together are not sent again together.
  return Math.max(backoffMs, Math.min(retryAfterMs, RETRY_AFTER_MAX_MS)) * (1 + Math.random() / 4);
}
