import { ERRORS } from '../contract/errors.ts';
import { type NewPlant, newPlantJson } from '../contract/plant.ts';
import type { Cancellation } from './cancellation.ts';
import { BAD_HTTP_TRIES_MAX, INTERNAL_ERROR_TRIES_MAX } from './limits.ts';
import { errorAfterUnknown, mayHaveStored, PlantStoreError } from './plant-store-error.ts';
import { retryWaitMs } from './retry-wait.ts';
import { readStoredPlant, type StoredPlant } from './stored-plant.ts';
import { NoAnswer, type Transport, takesNoHttp } from './transport.ts';
import { untrustedCertificate } from './untrusted-certificate.ts';

/** What the plants of one call have in common. */
export interface Call {
  /** Gives up further tries, and the waits before them. */
  readonly tries: Cancellation;
  /** Gives up requests that were sent. */
  readonly requests: Cancellation;
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

/** Sends a plant, and sends it again while that may help. */
export class PlantSender {
  readonly #transport: Transport;
  readonly #url: string;
  readonly #answerWaitMs: number;
  readonly #retryForMs: number;

  /** @param url of the operation, for messages */
  constructor(transport: Transport, url: string, answerWaitMs: number, retryForMs: number) {
    this.#transport = transport;
    this.#url = url;
    this.#answerWaitMs = answerWaitMs;
    this.#retryForMs = retryForMs;
  }

  /**
   * Settles when the plant is stored. The time for further tries begins with the first one, and anew whenever another plant
   * of the call is settled, for then the service is there.
   *
   * @throws {PlantStoreError} when it is rejected, or not confirmed in time
   * @throws the reason for which the call was given up, and what its listener throws
   */
  async send(plant: NewPlant, call: Call): Promise<StoredPlant> {
    const startMs = performance.now();
    let isUnknown = false;
    let countedTries = 0;
    for (let tries = 1; ; tries++) {
      call.tries.throwIfAborted();
      try {
        return await this.#post(plant, call.requests);
      } catch (error) {
        if (!(error instanceof PlantStoreError)) throw error;
        const triesMax = TRIES_MAX.get(error.error);
        if (triesMax !== undefined) countedTries++;
        const waitMs = retryWaitMs(tries, error.retryAfterMs);
        const untilMs = Math.max(startMs, call.settledMs) + this.#retryForMs;
        if (!error.canRetry || countedTries === triesMax || performance.now() + waitMs > untilMs)
          throw isUnknown ? errorAfterUnknown(error) : error;
        isUnknown ||= mayHaveStored(error);
        call.tries.throwIfAborted();
        call.onRetry?.(error);
        await sleep(waitMs, call.tries);
      }
    }
  }

  async #post(plant: NewPlant, requests: Cancellation): Promise<StoredPlant> {
    const post = this.#transport.post(newPlantJson(plant));
    const slot = requests.add(post);
    try {
      return readStoredPlant(plant, await post.answer);
    } catch (error) {
      throw error instanceof NoAnswer ? this.#unanswered(error) : error;
    } finally {
      requests.remove(slot);
    }
  }

  #unanswered({ code, cause }: NoAnswer): PlantStoreError {
    if (code === 'ECONNABORTED')
      return new PlantStoreError('the client was closed', { code, canRetry: false });
    const untrusted = untrustedCertificate(this.#url, code);
    if (untrusted !== undefined) return new PlantStoreError(untrusted, { code, canRetry: false, cause });
    const tls = this.#url.startsWith('https:') ? ' over TLS' : '';
    let why = `${code === undefined ? '' : ` (${code})`}; is the service running there?`;
    if (code === 'ETIMEDOUT') why = ` within ${this.#answerWaitMs} ms`;
    else if (takesNoHttp(code)) why = `; what listens there takes no HTTP${tls} (${code}); check the address`;
    return new PlantStoreError(`no answer from ${this.#url}${why}`, { code, canRetry: true, cause });
  }
}

async function sleep(waitMs: number, cancellation: Cancellation): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let slot: number | undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      timer = setTimeout(resolve, waitMs);
      slot = cancellation.add({ abandon: reject });
    });
  } finally {
    clearTimeout(timer);
    if (slot !== undefined) cancellation.remove(slot);
  }
}
