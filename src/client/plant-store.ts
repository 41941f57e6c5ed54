import { BEARER_TOKEN } from '../core/contract/bearer-token.ts';
import { REVISION_MAX } from '../core/contract/limits.ts';
import type { Outcome, Plant } from '../core/contract/plant.ts';
import { BulkCreate, CONCURRENCY_MAX, type PlantResult } from './bulk-create.ts';
import { fetchTransport } from './fetch-transport.ts';
import { newPlantOf, type PlantInput } from './plant-input.ts';
import type { PlantStoreError } from './plant-store-error.ts';
import { Call, type ClientState, closedError, sendPlant, TIMER_MAX_MS } from './retrying-request.ts';
import type { StoredPlant } from './stored-plant.ts';
import { isBaseUrl, plantsUrl, type Transport } from './transport.ts';

export { plantIdOf } from './plant-id.ts';
export { type ErrorNumber, PlantChanged, PlantStoreError } from './plant-store-error.ts';
export type { Outcome, Plant, PlantInput, PlantResult, StoredPlant };

export interface PlantStoreOptions {
  /** Base URL of the service, without `/plants`. Default: `PLANT_STORE_URL` of the environment. */
  url?: string | URL | undefined;
  /** Bearer token. Default: `PLANT_STORE_TOKEN` of the environment. */
  token?: string | undefined;
  /** Timeout for one response, in ms. Default: 10,000. */
  responseTimeoutMs?: number | undefined;
  /** How long a plant is retried, in ms from the call. Default: 30,000. 0 sends each plant once. */
  retryForMs?: number | undefined;
  /** Sends the requests, for example through a proxy. Default: the `fetch` of the runtime. */
  fetch?: typeof fetch | undefined;
  /** Sends the requests instead of `fetch`, for example with another HTTP client. */
  transport?: Transport | undefined;
}

export interface CreatePlantOptions {
  /** Abandons the request when it aborts. The plant may be stored. */
  signal?: AbortSignal | undefined;
  /**
   * The number that the latest revision of the plant must have; 0: there must be no plant with this
   * id. Default: the plant is stored whatever is there. Content that is already the latest revision
   * is `unchanged` whatever this number is, so a retry is always safe.
   */
  ifRevision?: number | undefined;
}

export interface CreatePlantsOptions<Input extends PlantInput = PlantInput> {
  /** Most plants that were sent and whose result was not yet read. Default: 64. */
  concurrency?: number;
  /** Stops sending when it aborts. Plants in flight have 5 s to get their responses. */
  signal?: AbortSignal;
  /** As for one plant. One number for all plants, or a function that gives the number of each. */
  ifRevision?: number | undefined | ((input: Input) => number | undefined);
  /** Called for each failed attempt that will be repeated. What it throws stops the call. */
  onRetry?: (error: PlantStoreError) => void;
}

/**
 * Sends plants to a plant store.
 *
 * Sending the same content under the same id again changes nothing, unless newer content was sent
 * under that id. So the client retries transient failures: no response, 408, 429, 502, 503, 504,
 * and the plant store's own 500 and error 40000. The delay doubles with each attempt. A
 * `Retry-After` header can make it longer.
 *
 * @example
 * const store = new PlantStore({ url: 'http://127.0.0.1:8080', token });
 * const { revision, outcome } = await store.createPlant({ id: 7n, name: 'Ficus lyrata' });
 * store.close();
 */
export class PlantStore {
  readonly #service: ClientState;

  /** @throws {TypeError} when URL or token is missing, or an option is invalid */
  constructor(options: PlantStoreOptions = {}) {
    const {
      responseTimeoutMs = 10_000,
      retryForMs = 30_000,
      fetch: fetchWith = fetch,
      transport = fetchTransport(fetchWith),
    } = options;
    const base = checkUrl(options.url ?? environment('PLANT_STORE_URL'));
    const source = options.url === undefined ? 'PLANT_STORE_URL' : 'the option url';
    const addressAdvice = `check ${source}, the address of the service without /plants: ${base}`;
    checkNumber('responseTimeoutMs', responseTimeoutMs, 1, TIMER_MAX_MS);
    checkNumber('retryForMs', retryForMs, 0, TIMER_MAX_MS);
    const token = checkToken(options.token ?? environment('PLANT_STORE_TOKEN'));
    if (typeof fetchWith !== 'function') throw new TypeError('fetch must be a function');
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
    const limits = { responseTimeoutMs, retryForMs };
    const address = { url: plantsUrl(base).href, addressAdvice };
    this.#service = { transport, ...address, headers, ...limits, calls: new Set(), isClosed: false };
  }

  /**
   * Sends one plant. Resolves when the plant is on the disk of the service.
   *
   * @throws {PlantChanged} when the latest revision is not `ifRevision`, and has other content
   * @throws {TypeError} when `ifRevision` is not an integer from 0 to 2,147,483,647
   * @throws {PlantStoreError} when the plant is rejected, or not confirmed in time. A plant that
   *   was not confirmed may be stored: send it again to find out. After such an attempt, the
   *   message of a rejection mentions it.
   * @throws the reason of the signal when it aborts
   * @example
   * const stored = await store.createPlant({ id: '9007199254740993', name: 'Monstera deliciosa' });
   * console.log(stored.id, stored.revision, stored.outcome); // 9007199254740993n 1 created
   */
  async createPlant(
    input: PlantInput,
    { signal, ifRevision }: CreatePlantOptions = {},
  ): Promise<StoredPlant> {
    const plant = newPlantOf(input);
    checkIfRevision(ifRevision);
    signal?.throwIfAborted();
    const { calls } = this.#service;
    const call = new Call();
    const onAbort = (): void => call.abandon(signal?.reason);
    signal?.addEventListener('abort', onAbort);
    calls.add(call);
    try {
      return await sendPlant(this.#service, call, plant, ifRevision);
    } finally {
      calls.delete(call);
      signal?.removeEventListener('abort', onAbort);
    }
  }

  /**
   * Sends many plants concurrently, and yields one result per plant in the order of the inputs. It
   * reads the next input only while fewer than `concurrency` results are outstanding. Plants with
   * the same id are sent one after the other, so that their revisions have the order of the inputs.
   * `retryForMs` starts again whenever a plant is stored or rejected.
   *
   * When the call ends early, it first yields the results of the plants that were sent.
   *
   * @throws {TypeError} when `concurrency` is not an integer from 1 to 10,000, or an `ifRevision` is
   *   not one from 0 to 2,147,483,647
   * @throws {PlantStoreError} when the error concerns all plants: the token is rejected, the
   *   service is unavailable, or the server is not a plant store
   * @throws the reason of the signal when it aborts, what the inputs throw, and what `onRetry`
   *   throws
   * @example
   * for await (const { plant, error, input } of store.createPlants(plants)) {
   *   if (error !== undefined) console.error(`${input.id} is rejected: ${error.message}`);
   *   else console.log(`${plant.id} is ${plant.outcome}`);
   * }
   */
  createPlants<Input extends PlantInput>(
    inputs: Iterable<Input> | AsyncIterable<Input>,
    { concurrency = 64, signal, ifRevision, onRetry }: CreatePlantsOptions<Input> = {},
  ): AsyncGenerator<PlantResult<Input>, void, undefined> {
    checkNumber('concurrency', concurrency, 1, CONCURRENCY_MAX);
    const ifRevisionOf = (input: Input): number | undefined =>
      checkIfRevision(typeof ifRevision === 'function' ? ifRevision(input) : ifRevision);
    if (typeof ifRevision === 'number') checkIfRevision(ifRevision);
    return new BulkCreate(this.#service, concurrency, ifRevisionOf, onRetry).results(inputs, signal);
  }

  /** Ends the client. Calls that have not ended, and later ones, fail. */
  close(): void {
    this.#service.isClosed = true;
    for (const call of this.#service.calls) call.abandon(closedError());
  }
}

function checkUrl(base: string | URL | undefined): URL {
  if (base === undefined)
    throw new TypeError('set the option url, or PLANT_STORE_URL, to the address of the service');
  if (!URL.canParse(base))
    throw new TypeError(`url is not a valid URL: ${base}; an example is http://127.0.0.1:8080`);
  const url = new URL(base);
  if (isBaseUrl(url)) return url;
  throw new TypeError('url must be an http or https address without user name, password, ? and #');
}

function checkNumber(name: string, value: number, min: number, max: number): void {
  if (Number.isInteger(value) && value >= min && value <= max) return;
  throw new TypeError(`${name} must be an integer from ${min} to ${max}; it is ${value}`);
}

function checkIfRevision(ifRevision: number | undefined): number | undefined {
  if (ifRevision !== undefined) checkNumber('ifRevision', ifRevision, 0, REVISION_MAX);
  return ifRevision;
}

function checkToken(token: string | undefined): string {
  if (token === undefined)
    throw new TypeError('set the option token, or PLANT_STORE_TOKEN, to the bearer token');
  if (BEARER_TOKEN.test(token)) return token;
  throw new TypeError('token is empty, or has white space or another character that a token cannot have');
}

/** Browsers have no environment. Deno throws for variables that the program may not read. */
function environment(name: string): string | undefined {
  try {
    const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
    return process?.env?.[name] || undefined;
  } catch {
    return undefined;
  }
}
