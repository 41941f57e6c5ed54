import { type NewPlant, newPlantJson, OUTCOMES, type Outcome, type Plant } from '../contract/plant.ts';
import { newPlantOf, type PlantInput } from './plant-input.ts';
import { errorOfAnswer, PlantStoreError } from './plant-store-error.ts';

export { type ErrorNumber, PlantStoreError } from './plant-store-error.ts';
export type { Outcome, Plant, PlantInput };

/** Where plants go, and how long to try. */
export interface PlantStoreOptions {
  /** Base address of the service, without `/plants`. Without it: `PLANT_STORE_URL` of the environment. */
  url?: string | URL | undefined;
  /** Bearer token. Without it: `PLANT_STORE_TOKEN` of the environment. */
  token?: string | undefined;
  /** How long to wait for one answer, in ms; 10,000 unless given. */
  answerWaitMs?: number | undefined;
  /** For how long a plant is sent again, in ms from the call; 30,000 unless given, and 0 sends it once. */
  retryForMs?: number | undefined;
}

/** A plant that is on the disk of the service. */
export interface StoredPlant extends Plant {
  id: bigint;
  /** Of the plant with this id: 1 for the first content, one more for each other one. */
  revision: number;
  outcome: Outcome;
}

/** What became of one plant of {@link PlantStore.createPlants}. */
export type PlantResult =
  | { plant: StoredPlant; error?: never; input: PlantInput }
  | { plant?: never; error: PlantStoreError; input: PlantInput };

const ANSWER_WAIT_MS = 10_000;
const RETRY_FOR_MS = 30_000;
/** Before the first further try; it doubles from try to try up to the second number. */
const RETRY_WAIT_MIN_MS = 100;
const RETRY_WAIT_MAX_MS = 5_000;
const CONCURRENCY = 64;
/** Of an answer, beside the plant that it repeats. */
const ANSWER_BYTES_MAX = 64 * 1024;
/** RFC 6750 section 2.1: b64token. */
const TOKEN = /^[0-9A-Za-z\-._~+/]+=*$/;
/** Each says that further plants would fare no better: credential, path, method. */
const ERRORS_OF_ALL_PLANTS: readonly (number | undefined)[] = [40101, 40102, 40401, 40501, undefined];

/**
 * Sends plants to a plant store.
 *
 * A plant may be sent again at any time and does no harm: the same content under the same id changes nothing. So what
 * may pass (no answer, 408, 429, 500, 503) is tried again by itself, after a wait that doubles, or as long as the answer asks
 * for with `Retry-After`.
 */
export class PlantStore {
  readonly #url: string;
  readonly #headers: Record<string, string>;
  readonly #answerWaitMs: number;
  readonly #retryForMs: number;

  /** @throws {TypeError} when address or token is missing or malformed */
  constructor({ url, token, answerWaitMs, retryForMs }: PlantStoreOptions = {}) {
    this.#url = plantsUrl(url ?? environment('PLANT_STORE_URL'));
    this.#headers = {
      Authorization: `Bearer ${checkToken(token ?? environment('PLANT_STORE_TOKEN'))}`,
      'Content-Type': 'application/json',
    };
    this.#answerWaitMs = answerWaitMs ?? ANSWER_WAIT_MS;
    this.#retryForMs = retryForMs ?? RETRY_FOR_MS;
  }

  /**
   * Sends a plant, and waits until it is on the disk of the service.
   *
   * @throws {PlantStoreError} when it is refused, or not confirmed in time; a plant that was not confirmed may be stored
   *   all the same, and sending it again settles that
   * @throws the reason of the signal when it is aborted
   */
  async createPlant(input: PlantInput, { signal }: { signal?: AbortSignal } = {}): Promise<StoredPlant> {
    return await this.#create(newPlantOf(input), signal);
  }

  async #create(plant: NewPlant, signal: AbortSignal | undefined): Promise<StoredPlant> {
    const untilMs = performance.now() + this.#retryForMs;
    for (let tries = 1; ; tries++) {
      try {
        return await this.#post(plant, signal);
      } catch (error) {
        if (!(error instanceof PlantStoreError && error.canRetry)) throw error;
        const waitMs = retryWaitMs(tries, error.retryAfterMs);
        if (performance.now() + waitMs > untilMs) throw error;
        await sleep(waitMs, signal);
      }
    }
  }

  /**
   * Sends many plants, some at a time, and says of each what became of it, in the order in which they were given. It
   * takes no further one while that many are sent or wait to be asked for. Plants with the same id are sent one
   * after the other, since their order is that of the revisions.
   *
   * @throws {PlantStoreError} when no further plant would fare better: the token is refused, or the service stays away
   * @throws the reason of the signal when it is aborted
   */
  async *createPlants(
    inputs: Iterable<PlantInput> | AsyncIterable<PlantInput>,
    { concurrency = CONCURRENCY, signal }: { concurrency?: number; signal?: AbortSignal } = {},
  ): AsyncGenerator<PlantResult, void, undefined> {
    const ending = new AbortController();
    const ended = signal === undefined ? ending.signal : AbortSignal.any([signal, ending.signal]);
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
      const result = (before ?? Promise.resolve()).then(() => this.#result(plant, input, ended));
      const settled = result.then(noop, noop).then(() => {
        if (lastOfId.get(id) === settled) lastOfId.delete(id);
      });
      lastOfId.set(id, settled);
      return result;
    };
    try {
      for await (const input of inputs) {
        results.push(send(input));
        // One that fails for all of them is heard of in its turn.
        results.at(-1)!.catch(noop);
        if (results.length >= concurrency) yield await results.shift()!;
      }
      while (results.length > 0) yield await results.shift()!;
    } finally {
      ending.abort();
    }
  }

  async #result(plant: NewPlant, input: PlantInput, signal: AbortSignal): Promise<PlantResult> {
    try {
      return { plant: await this.#create(plant, signal), input };
    } catch (error) {
      if (!(error instanceof PlantStoreError)) throw error;
      if (error.canRetry || ERRORS_OF_ALL_PLANTS.includes(error.error)) throw error;
      return { error, input };
    }
  }

  async #post(plant: NewPlant, signal: AbortSignal | undefined): Promise<StoredPlant> {
    signal?.throwIfAborted();
    const attempt = new AbortController();
    const late = setTimeout(() => attempt.abort(), this.#answerWaitMs);
    const onAbort = (): void => attempt.abort();
    signal?.addEventListener('abort', onAbort);
    const body = newPlantJson(plant);
    try {
      const response = await fetch(this.#url, {
        ...{ method: 'POST', headers: this.#headers, body, signal: attempt.signal },
        ...{ redirect: 'manual', credentials: 'omit', cache: 'no-store' },
      } as RequestInit);
      return storedPlant(plant, response, await textOf(response, body.length));
    } catch (cause) {
      if (cause instanceof PlantStoreError) throw cause;
      signal?.throwIfAborted();
      throw new PlantStoreError(
        attempt.signal.aborted
          ? `no answer from ${this.#url} within ${this.#answerWaitMs} ms`
          : `no answer from ${this.#url}; is the service running there?`,
        { canRetry: true, cause },
      );
    } finally {
      clearTimeout(late);
      signal?.removeEventListener('abort', onAbort);
    }
  }
}

/** @throws {PlantStoreError} when the answer does not say that this plant is stored */
function storedPlant(sent: NewPlant, { status, headers }: Response, body: string): StoredPlant {
  if (status !== 200) throw errorOfAnswer(status, headers.get('Retry-After'), body);
  const outcome = OUTCOMES.find(each => each === headers.get('Plant-Outcome'));
  const revision = Number(/^[1-9][0-9]{0,15}$/.exec(headers.get('Plant-Revision') ?? '')?.[0]);
  if (outcome === undefined || Number.isNaN(revision) || headers.get('Plant-Id') !== String(sent.id)) {
    throw new PlantStoreError(
      'the answer is 200 without the headers that prove what was stored (Plant-Id, Plant-Revision, Plant-Outcome); ' +
        'is it a plant store, and does a gateway before it leave them out?',
      { status, canRetry: false },
    );
  }
  const { name, tag } = readPlant(body);
  if (name !== sent.name || tag !== sent.tag) {
    throw new PlantStoreError(
      'the answer is 200 with another name or tag than was sent; is it a plant store, and does a gateway before it change them?',
      { status, canRetry: false },
    );
  }
  return { ...sent, revision, outcome };
}

/** The text of an answer, which repeats the plant or says what is wrong with it; of one that goes on and on, the beginning. */
async function textOf(response: Response, sentLength: number): Promise<string> {
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  // A character of JSON takes up to six bytes.
  const lengthMax = 6 * sentLength + ANSWER_BYTES_MAX;
  let text = '';
  for (let bytes = 0; reader !== undefined; ) {
    const { done, value } = await reader.read();
    if (done) break;
    bytes += value.length;
    text += decoder.decode(value, { stream: true });
    if (bytes > lengthMax) {
      await reader.cancel();
      break;
    }
  }
  return text;
}

function readPlant(body: string): Plant {
  const { name, tag } = Object(parsed(body));
  if (typeof name !== 'string' || (tag !== undefined && typeof tag !== 'string')) {
    throw new PlantStoreError('the answer is 200, and its body is no Plant; is it a plant store?', {
      ...{ status: 200, canRetry: false },
    });
  }
  return tag === undefined ? { name } : { name, tag };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function retryWaitMs(tries: number, retryAfterMs: number): number {
  const doubledMs = Math.min(RETRY_WAIT_MAX_MS, RETRY_WAIT_MIN_MS * 2 ** (tries - 1));
  // A little later each, or all that were refused together would come back together.
  return Math.max(doubledMs, retryAfterMs) * (1 + Math.random() / 4);
}

async function sleep(waitMs: number, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const onAbort = (): void => {
      clearTimeout(timer);
      reject(signal!.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    }, waitMs);
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

function plantsUrl(base: string | URL | undefined): string {
  if (base === undefined)
    throw new TypeError('give the address of the service as url, or set PLANT_STORE_URL');
  const url = new URL(base);
  if (
    !['http:', 'https:'].includes(url.protocol) ||
    url.username + url.password + url.search + url.hash !== ''
  ) {
    throw new TypeError(`url must be an http or https address without user name, password, ? and #`);
  }
  return `${url.href.replace(/\/$/, '')}/plants`;
}

function checkToken(token: string | undefined): string {
  if (token === undefined) throw new TypeError('give the bearer token as token, or set PLANT_STORE_TOKEN');
  if (!TOKEN.test(token)) throw new TypeError('token is not a bearer token: it holds other characters');
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

function noop(): void {}
