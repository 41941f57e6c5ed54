import { ERRORS } from '../contract/errors.ts';
import { type NewPlant, newPlantJson } from '../contract/plant.ts';
import {
  BAD_HTTP_ATTEMPTS_MAX,
  INTERNAL_ERROR_ATTEMPTS_MAX,
  RETRY_AFTER_MAX_MS,
  RETRY_DELAY_MAX_MS,
  RETRY_DELAY_MIN_MS,
} from './limits.ts';
import { errorAfterUnknown, mayHaveStored, PlantStoreError } from './plant-store-error.ts';
import { readStoredPlant, type StoredPlant } from './stored-plant.ts';
import { isProtocolError, NoResponse, type Post, type Transport } from './transport.ts';
import { untrustedCertificate } from './untrusted-certificate.ts';

/** Where plants are sent, and for how long. */
export interface Service {
  transport: Transport;
  /** Address of `POST /plants`, for messages. */
  url: string;
  responseTimeoutMs: number;
  retryForMs: number;
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
  [ERRORS.internal.number, INTERNAL_ERROR_ATTEMPTS_MAX],
  [ERRORS.badHttp.number, BAD_HTTP_ATTEMPTS_MAX],
]);

/** Sends one plant, and repeats the request after transient errors. */
export class RetryingRequest {
  readonly #service: Service;
  readonly #call: Call;
  readonly #plant: NewPlant;
  #stopped: { reason: unknown } | undefined;
  /** The request of the last attempt. */
  #request: Post | undefined;
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
    this.#request?.abandon(reason);
  }

  #throwIfStopped(): void {
    if (this.#stopped !== undefined) throw this.#stopped.reason;
  }

  async #post(): Promise<StoredPlant> {
    this.#request = this.#service.transport.post(newPlantJson(this.#plant));
    try {
      return readStoredPlant(this.#plant, await this.#request.response);
    } catch (error) {
      throw error instanceof NoResponse ? this.#noResponseError(error) : error;
    }
  }

  #noResponseError({ code, cause }: NoResponse): PlantStoreError {
    const { url, responseTimeoutMs } = this.#service;
    if (code === 'ECONNABORTED')
      return new PlantStoreError('the client was closed', { code, canRetry: false });
    const untrusted = untrustedCertificate(url, code);
    if (untrusted !== undefined) return new PlantStoreError(untrusted, { code, canRetry: false, cause });
    const tls = url.startsWith('https:') ? ' over TLS' : '';
    let why = `${code === undefined ? '' : ` (${code})`}; is the service running there?`;
    if (code === 'ETIMEDOUT') why = ` within ${responseTimeoutMs} ms`;
    else if (isProtocolError(code))
      why = `; the server did not respond with HTTP${tls} (${code}); check the address`;
    return new PlantStoreError(`no response from ${url}${why}`, { code, canRetry: true, cause });
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
