import { BEARER_TOKEN } from '../contract/bearer-token.ts';
import type { Outcome, Plant } from '../contract/plant.ts';
import { ManyPlants, type PlantResult } from './bulk-create.ts';
import { FetchTransport } from './fetch-transport.ts';
import { CONCURRENCY, CONCURRENCY_MAX, RESPONSE_TIMEOUT_MS, RETRY_FOR_MS, TIMER_MS_MAX } from './limits.ts';
import { openNodeTransport } from './node/pipelined-transport.ts';
import { newPlantOf, type PlantInput } from './plant-input.ts';
import type { PlantStoreError } from './plant-store-error.ts';
import { PlantSending, type Service } from './retrying-request.ts';
import type { StoredPlant } from './stored-plant.ts';
import { isBaseUrl, plantsUrl } from './transport.ts';

export { type ErrorNumber, PlantStoreError } from './plant-store-error.ts';
export type { Outcome, Plant, PlantInput, PlantResult, StoredPlant };

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
  responseTimeoutMs?: number | undefined;
  /** For how long a plant is sent again, in ms from the call; 30,000 unless given, and 0 sends it once. */
  retryForMs?: number | undefined;
  /** Sends with this, for a proxy or certificates of your own. Without it Node sends over connections of its own. */
  fetch?: typeof fetch | undefined;
}

/** How many plants are sent at a time, and who hears of it. */
export interface CreatePlantsOptions {
  /** Plants that are sent and not yet handed out; 64 unless given. */
  concurrency?: number;
  /** Ends it: no further plant is sent, and what was sent has 5 s to be answered. */
  signal?: AbortSignal;
  /** Hears of each try that failed and is repeated. What it throws ends the sending, as an error of all plants does. */
  onRetry?: (error: PlantStoreError) => void;
}

/**
 * Sends plants to a plant store.
 *
 * The same content under the same id changes nothing, so a plant may be sent again, unless a newer one was sent under its id. What
 * may pass (no answer, 408, 429, 502, 503, 504, and 500 and error 40000 where a plant store answers it) is tried again by itself, after a
 * wait that doubles, or as long as the answer asks for with `Retry-After`.
 */
export class PlantStore {
  readonly #service: Service;

  /** @throws {TypeError} when address or token is missing, or an option is malformed */
  constructor(options: PlantStoreOptions = {}) {
    const { fetch: fetchWith } = options;
    const url = plantsUrl(checkUrl(options.url ?? environment('PLANT_STORE_URL')));
    const responseTimeoutMs = checkNumber(
      'answerWaitMs',
      options.responseTimeoutMs ?? RESPONSE_TIMEOUT_MS,
      1,
      TIMER_MS_MAX,
    );
    const retryForMs = checkNumber('retryForMs', options.retryForMs ?? RETRY_FOR_MS, 0, TIMER_MS_MAX);
    const token = checkToken(options.token ?? environment('PLANT_STORE_TOKEN'));
    if (fetchWith !== undefined && typeof fetchWith !== 'function')
      throw new TypeError('fetch must be a function');
    const settings = { url, token, responseTimeoutMs };
    const nodeTransport = fetchWith === undefined ? openNodeTransport(settings) : undefined;
    const transport = nodeTransport ?? new FetchTransport(settings, fetchWith ?? fetch);
    this.#service = { transport, url: url.href, responseTimeoutMs, retryForMs };
  }

  /**
   * Sends a plant, and waits until it is on the disk of the service.
   *
   * @throws {PlantStoreError} when it is refused, or not confirmed in time; a plant that was not confirmed may be stored
   *   all the same, and sending it again settles that. The message says so of a refusal behind such a try
   * @throws the reason of the signal when it is aborted
   */
  async createPlant(input: PlantInput, { signal }: { signal?: AbortSignal } = {}): Promise<StoredPlant> {
    const sending = new PlantSending(this.#service, { settledMs: 0 }, newPlantOf(input));
    const onAbort = (): void => sending.abandon(signal?.reason);
    signal?.throwIfAborted();
    signal?.addEventListener('abort', onAbort);
    try {
      return await sending.run();
    } finally {
      signal?.removeEventListener('abort', onAbort);
    }
  }

  /**
   * Sends many plants, some at a time, and says of each what became of it, in the order in which they were given. It
   * takes no further one while that many are sent or wait to be asked for. Plants with the same id are sent one
   * after the other, since their order is that of the revisions. A plant is sent again for `retryForMs` since any of them was
   * settled.
   *
   * Whatever ends it early, first it says what became of the plants that were sent.
   *
   * @throws {TypeError} when concurrency is no whole number from 1 on
   * @throws {PlantStoreError} when no further plant would fare better: the token is refused, the service stays away, or
   *   what answers is none
   * @throws the reason of the signal when it is aborted, what the inputs throw, and what `onRetry` throws
   */
  createPlants<Input extends PlantInput>(
    inputs: Iterable<Input> | AsyncIterable<Input>,
    { concurrency = CONCURRENCY, signal, onRetry }: CreatePlantsOptions = {},
  ): AsyncGenerator<PlantResult<Input>, void, undefined> {
    checkNumber('concurrency', concurrency, 1, CONCURRENCY_MAX);
    return new ManyPlants<Input>(this.#service, concurrency, onRetry).results(inputs, signal);
  }

  /** Cuts the connections, which else close by themselves. Plants that are on their way fail, and so do all others. */
  close(): void {
    this.#service.transport.close();
  }
}

function checkUrl(base: string | URL | undefined): URL {
  if (base === undefined)
    throw new TypeError('give the address of the service as url, or set PLANT_STORE_URL');
  if (!URL.canParse(base))
    throw new TypeError(`url is no address: ${base}; it is one such as http://127.0.0.1:8080`);
  const url = new URL(base);
  if (isBaseUrl(url)) return url;
  throw new TypeError('url must be an http or https address without user name, password, ? and #');
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
