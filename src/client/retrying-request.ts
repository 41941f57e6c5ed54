import { ERRORS } from '../contract/errors.ts';
import { type NewPlant, newPlantJson } from '../contract/plant.ts';
import {
  BAD_HTTP_TRIES_MAX,
  INTERNAL_ERROR_TRIES_MAX,
  RETRY_AFTER_MAX_MS,
  RETRY_DELAY_MAX_MS,
  RETRY_DELAY_MIN_MS,
} from './limits.ts';
import { errorAfterUnknown, mayHaveStored, PlantStoreError } from './plant-store-error.ts';
import { readStoredPlant, type StoredPlant } from './stored-plant.ts';
import { NoResponse, type Post, type Transport, takesNoHttp } from './transport.ts';
import { untrustedCertificate } from './untrusted-certificate.ts';

/** Where plants are sent, and for how long. */
export interface Service {
  transport: Transport;
  /** Of the operation, for messages. */
  url: string;
  responseTimeoutMs: number;
  retryForMs: number;
}

/** What the plants of one call have in common. */
export interface Call {
  /** Hears of each try that failed and is repeated. What it throws ends the sending of that plant. */
  readonly onRetry?: ((error: PlantStoreError) => void) | undefined;
  /** When the last of its plants was settled, by `performance.now()`; 0 before. */
  settledMs: number;
}

/** How often a plant is sent that is answered so; with other errors that may pass, time is the only limit. */
const TRIES_MAX = new Map<number | undefined, number>([
  [ERRORS.internal.number, INTERNAL_ERROR_TRIES_MAX],
  [ERRORS.badHttp.number, BAD_HTTP_TRIES_MAX],
]);

/** Sends one plant, and sends it again while that may help. */
export class PlantSending {
  readonly #service: Service;
  readonly #call: Call;
  readonly #plant: NewPlant;
  #stopped: { reason: unknown } | undefined;
  /** The last request that was sent. */
  #request: Post | undefined;
  /** Ends the wait for the next try. */
  #wake: (() => void) | undefined;

  constructor(service: Service, call: Call, plant: NewPlant) {
    this.#service = service;
    this.#call = call;
    this.#plant = plant;
  }

  /**
   * Settles when the plant is stored. The time for further tries begins with the first one, and anew whenever another plant
   * of the call is settled, for then the service is there.
   *
   * @throws {PlantStoreError} when it is rejected, or not confirmed in time
   * @throws the reason for which it was stopped, and what the listener of the call throws
   */
  async run(): Promise<StoredPlant> {
    const startMs = performance.now();
    let isUnknown = false;
    let countedTries = 0;
    for (let tries = 1; ; tries++) {
      this.#throwIfStopped();
      try {
        return await this.#post();
      } catch (error) {
        if (!(error instanceof PlantStoreError)) throw error;
        const triesMax = TRIES_MAX.get(error.error);
        if (triesMax !== undefined) countedTries++;
        const waitMs = retryDelayMs(tries, error.retryAfterMs);
        const untilMs = Math.max(startMs, this.#call.settledMs) + this.#service.retryForMs;
        if (!error.canRetry || countedTries === triesMax || performance.now() + waitMs > untilMs)
          throw isUnknown ? errorAfterUnknown(error) : error;
        isUnknown ||= mayHaveStored(error);
        this.#throwIfStopped();
        this.#call.onRetry?.(error);
        await this.#sleep(waitMs);
      }
    }
  }

  /** Begins no further try. A request that was sent may still be answered. */
  stop(reason: unknown): void {
    this.#stopped ??= { reason };
    this.#wake?.();
  }

  /** Gives up a request that was sent, too. */
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
      throw error instanceof NoResponse ? this.#pending(error) : error;
    }
  }

  #pending({ code, cause }: NoResponse): PlantStoreError {
    const { url, responseTimeoutMs } = this.#service;
    if (code === 'ECONNABORTED')
      return new PlantStoreError('the client was closed', { code, canRetry: false });
    const untrusted = untrustedCertificate(url, code);
    if (untrusted !== undefined) return new PlantStoreError(untrusted, { code, canRetry: false, cause });
    const tls = url.startsWith('https:') ? ' over TLS' : '';
    let why = `${code === undefined ? '' : ` (${code})`}; is the service running there?`;
    if (code === 'ETIMEDOUT') why = ` within ${responseTimeoutMs} ms`;
    else if (takesNoHttp(code)) why = `; what listens there takes no HTTP${tls} (${code}); check the address`;
    return new PlantStoreError(`no answer from ${url}${why}`, { code, canRetry: true, cause });
  }

  async #sleep(ms: number): Promise<void> {
    // The listener of the call may have stopped it.
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

/** How long to wait before a plant is sent again that was sent so often. @param askedMs what the response asked for */
function retryDelayMs(tries: number, askedMs: number): number {
  const doubledMs = Math.min(RETRY_DELAY_MAX_MS, RETRY_DELAY_MIN_MS * 2 ** (tries - 1));
  // A little later each, or all that were rejected together would come back together.
  return Math.max(doubledMs, Math.min(askedMs, RETRY_AFTER_MAX_MS)) * (1 + Math.random() / 4);
}
