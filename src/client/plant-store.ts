import { BEARER_TOKEN } from '../contract/bearer-token.ts';
import { type NewPlant, newPlantJson, type Outcome, type Plant } from '../contract/plant.ts';
import { Cancellation } from './cancellation.ts';
import {
  ANSWER_WAIT_MS,
  CONCURRENCY,
  CONCURRENCY_MAX,
  RETRY_FOR_MS,
  RETRY_WAIT_MAX_MS,
  WAIT_MS_MAX,
} from './limits.ts';
import { openTransport } from './open-transport.ts';
import { newPlantOf, type PlantInput } from './plant-input.ts';
import {
  ERRORS_OF_ONE_PLANT,
  errorAfterUnknown,
  mayHaveStored,
  PlantStoreError,
} from './plant-store-error.ts';
import { plantsUrl } from './plants-url.ts';
import { retryWaitMs } from './retry-wait.ts';
import { readStoredPlant, type StoredPlant } from './stored-plant.ts';
import { NoAnswer, type Transport, takesNoHttp } from './transport.ts';
import { untrustedCertificate } from './untrusted-certificate.ts';

export { type ErrorNumber, PlantStoreError } from './plant-store-error.ts';
export type { Outcome, Plant, PlantInput, StoredPlant };

/** Where plants go, and how long to try. */
export interface PlantStoreOptions {
  /** Base address of the service, without `/plants`. Without it: `PLANT_STORE_URL` of the environment. */
  url?: string | URL | undefined;
  /** Bearer token. Without it: `PLANT_STORE_TOKEN` of the environment. */
  token?: string | undefined;
  /**
   * How long to wait for one answer, in ms; 10,000 unless given. In Node, where plants that are sent together share
   * connections, it counts from the answer before on the same connection; while it waits for one, from the last of any.
   */
  answerWaitMs?: number | undefined;
  /** For how long a plant is sent again, in ms from the call; 30,000 unless given, and 0 sends it once. */
  retryForMs?: number | undefined;
  /** Sends with this, for a proxy or certificates of your own. Without it Node sends over connections of its own. */
  fetch?: typeof fetch | undefined;
}

/** What became of one plant of {@link PlantStore.createPlants}. */
export type PlantResult =
  | { plant: StoredPlant; error?: never; input: PlantInput }
  | { plant?: never; error: PlantStoreError; input: PlantInput };

/**
 * Sends plants to a plant store.
 *
 * The same content under the same id changes nothing, so a plant may be sent again, unless a newer one was sent under its id. What
 * may pass (no answer, 408, 429, 502, 503, 504, and 500 and error 40000 where a plant store answers it) is tried again by itself, after a
 * wait that doubles, or as long as the answer asks for with `Retry-After`.
 */
export class PlantStore {
  readonly #url: string;
  readonly #answerWaitMs: number;
  readonly #retryForMs: number;
  readonly #transport: Transport;

  /** @throws {TypeError} when address or token is missing, or an option is malformed */
  constructor({ url, token, answerWaitMs, retryForMs, fetch: fetchWith }: PlantStoreOptions = {}) {
    const plantsAddress = plantsUrl(checkUrl(url ?? environment('PLANT_STORE_URL')));
    this.#url = plantsAddress.href;
    this.#answerWaitMs = checkNumber('answerWaitMs', answerWaitMs ?? ANSWER_WAIT_MS, 1, WAIT_MS_MAX);
    this.#retryForMs = checkNumber('retryForMs', retryForMs ?? RETRY_FOR_MS, 0, WAIT_MS_MAX);
    this.#transport = openTransport(
      {
        url: plantsAddress,
        token: checkToken(token ?? environment('PLANT_STORE_TOKEN')),
        answerWaitMs: this.#answerWaitMs,
      },
      fetchWith,
    );
  }

  /**
   * Sends a plant, and waits until it is on the disk of the service.
   *
   * @throws {PlantStoreError} when it is refused, or not confirmed in time; a plant that was not confirmed may be stored
   *   all the same, and sending it again settles that. The message says so of a refusal behind such a try
   * @throws the reason of the signal when it is aborted
   */
  async createPlant(input: PlantInput, { signal }: { signal?: AbortSignal } = {}): Promise<StoredPlant> {
    const plant = newPlantOf(input);
    if (signal === undefined) return await this.#create(plant, undefined);
    const cancellation = new Cancellation();
    const unfollow = cancellation.follow(signal);
    try {
      return await this.#create(plant, cancellation);
    } finally {
      unfollow();
    }
  }

  async #create(plant: NewPlant, cancellation: Cancellation | undefined): Promise<StoredPlant> {
    const untilMs = performance.now() + this.#retryForMs;
    let isUnknown = false;
    for (let tries = 1; ; tries++) {
      try {
        return await this.#post(plant, cancellation);
      } catch (error) {
        if (!(error instanceof PlantStoreError)) throw error;
        const waitMs = retryWaitMs(tries, RETRY_WAIT_MAX_MS, error.retryAfterMs);
        if (!error.canRetry || performance.now() + waitMs > untilMs)
          throw isUnknown ? errorAfterUnknown(error) : error;
        isUnknown ||= mayHaveStored(error);
        await sleep(waitMs, cancellation);
      }
    }
  }

  /**
   * Sends many plants, some at a time, and says of each what became of it, in the order in which they were given. It
   * takes no further one while that many are sent or wait to be asked for. Plants with the same id are sent one
   * after the other, since their order is that of the revisions.
   *
   * @throws {TypeError} when concurrency is no whole number from 1 on
   * @throws {PlantStoreError} when no further plant would fare better: the token is refused, the service stays away, or
   *   what answers is none
   * @throws the reason of the signal when it is aborted
   * @throws what the inputs throw, once it was said what became of those before
   */
  async *createPlants(
    inputs: Iterable<PlantInput> | AsyncIterable<PlantInput>,
    { concurrency = CONCURRENCY, signal }: { concurrency?: number; signal?: AbortSignal } = {},
  ): AsyncGenerator<PlantResult, void, undefined> {
    checkNumber('concurrency', concurrency, 1, CONCURRENCY_MAX);
    const cancellation = new Cancellation();
    const unfollow = signal === undefined ? undefined : cancellation.follow(signal);
    const results: Promise<PlantResult>[] = [];
    const lastOfId = new Map<bigint, Promise<unknown>>();
    const send = (input: PlantInput): Promise<PlantResult> => {
      let plant: NewPlant;
      try {
        // Now: the caller may use the object again for the next plant.
        plant = newPlantOf(input);
      } catch (error) {
        return Promise.resolve({ error: error as PlantStoreError, input });
      }
      const { id } = plant;
      const before = lastOfId.get(id);
      const sent = (): Promise<PlantResult> => this.#result(plant, input, cancellation);
      const result = before === undefined ? sent() : before.then(sent);
      const onSettled = (): void => {
        if (lastOfId.get(id) === settled) lastOfId.delete(id);
      };
      // A failure is heard of in its turn, below.
      const settled = result.then(onSettled, onSettled);
      lastOfId.set(id, settled);
      return result;
    };
    try {
      let end: { failure: unknown } | undefined;
      for await (const input of untilFailure(inputs, failure => (end = { failure }))) {
        results.push(send(input));
        if (results.length >= concurrency) yield await results.shift()!;
      }
      while (results.length > 0) yield await results.shift()!;
      if (end !== undefined) throw end.failure;
    } finally {
      unfollow?.();
      cancellation.abort(undefined);
    }
  }

  async #result(plant: NewPlant, input: PlantInput, cancellation: Cancellation): Promise<PlantResult> {
    try {
      return { plant: await this.#create(plant, cancellation), input };
    } catch (error) {
      if (!(error instanceof PlantStoreError)) throw error;
      if (!ERRORS_OF_ONE_PLANT.includes(error.error)) throw error;
      return { error, input };
    }
  }

  /** Cuts the connections, which else close by themselves. Plants that are on their way fail, and so do all others. */
  close(): void {
    this.#transport.close();
  }

  async #post(plant: NewPlant, cancellation: Cancellation | undefined): Promise<StoredPlant> {
    cancellation?.throwIfAborted();
    const post = this.#transport.post(newPlantJson(plant));
    cancellation?.add(post);
    try {
      return readStoredPlant(plant, await post.answer);
    } catch (error) {
      throw error instanceof NoAnswer ? this.#unanswered(error) : error;
    } finally {
      cancellation?.delete(post);
    }
  }

  #unanswered({ code, cause }: NoAnswer): PlantStoreError {
    if (code === 'ECONNABORTED')
      return new PlantStoreError('the client was closed', { code, canRetry: false });
    const untrusted = untrustedCertificate(this.#url, code);
    if (untrusted !== undefined) return new PlantStoreError(untrusted, { code, canRetry: false, cause });
    return new PlantStoreError(`no answer from ${this.#url}${this.#whyUnanswered(code)}`, {
      ...{ code, canRetry: true, cause },
    });
  }

  #whyUnanswered(code: string | undefined): string {
    if (code === 'ETIMEDOUT') return ` within ${this.#answerWaitMs} ms`;
    if (!takesNoHttp(code)) return `${code === undefined ? '' : ` (${code})`}; is the service running there?`;
    return `; what listens there takes no HTTP${this.#url.startsWith('https:') ? ' over TLS' : ''} (${code}); check the address`;
  }
}

/** All that the inputs give, whether or not they fail behind it. */
async function* untilFailure(
  inputs: Iterable<PlantInput> | AsyncIterable<PlantInput>,
  onFailure: (failure: unknown) => void,
): AsyncGenerator<PlantInput, void, undefined> {
  try {
    yield* inputs;
  } catch (failure) {
    onFailure(failure);
  }
}

async function sleep(waitMs: number, cancellation: Cancellation | undefined): Promise<void> {
  cancellation?.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const sleeping = {
      abandon: (reason: unknown) => {
        clearTimeout(timer);
        reject(reason);
      },
    };
    const timer = setTimeout(() => {
      cancellation?.delete(sleeping);
      resolve();
    }, waitMs);
    cancellation?.add(sleeping);
  });
}

function checkUrl(base: string | URL | undefined): URL {
  if (base === undefined)
    throw new TypeError('give the address of the service as url, or set PLANT_STORE_URL');
  if (!URL.canParse(base))
    throw new TypeError(`url is no address: ${base}; it is one such as http://127.0.0.1:8080`);
  const url = new URL(base);
  if (
    !['http:', 'https:'].includes(url.protocol) ||
    url.username + url.password + url.search + url.hash !== ''
  ) {
    throw new TypeError(`url must be an http or https address without user name, password, ? and #`);
  }
  return url;
}

function checkNumber(name: string, value: number, min: number, max: number): number {
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  throw new TypeError(`${name} must be a whole number from ${min} to ${max}; it is ${value}`);
}

function checkToken(token: string | undefined): string {
  if (token === undefined) throw new TypeError('give the bearer token as token, or set PLANT_STORE_TOKEN');
  if (token === '') throw new TypeError('token is empty');
  if (!BEARER_TOKEN.test(token))
    throw new TypeError(
      token === token.trim()
        ? 'token is not a bearer token: it holds other characters'
        : 'token has blanks or a line end around it, as in a file; take them off',
    );
  return token;
}

/** A browser has none, and Deno only what it was allowed to read. */
function environment(name: string): string | undefined {
  try {
    const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
    return process?.env?.[name] || undefined;
  } catch {
    return undefined;
  }
}
