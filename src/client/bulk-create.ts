import { ERRORS } from '../core/contract/errors.ts';
import type { NewPlant } from '../core/contract/plant.ts';
import { newPlantOf, type PlantInput } from './plant-input.ts';
import { type ErrorNumber, PlantStoreError } from './plant-store-error.ts';
import { Call, type ClientState, sendPlant } from './retrying-request.ts';
import type { StoredPlant } from './stored-plant.ts';

export const CONCURRENCY_MAX = 10_000;
/** Text of the plants in flight, in UTF-16 code units. A single plant may exceed it. */
export const IN_FLIGHT_TEXT_LENGTH_MAX = 16 * 1024 * 1024;
/** When a call ends early, plants in flight have this long to get their responses. */
const DRAIN_TIMEOUT_MS = 5_000;

/**
 * Errors of one plant, so that other plants may succeed. With 40001, a gateway may corrupt only
 * some bodies. With 50001, the service may fail on one plant each time.
 */
const ERRORS_OF_ONE_PLANT: readonly (ErrorNumber | undefined)[] = [
  ERRORS.notJson.number,
  ERRORS.notNewPlant.number,
  ERRORS.idTaken.number,
  ERRORS.plantChanged.number,
  ERRORS.bodyTooLarge.number,
  ERRORS.internal.number,
  ERRORS.damaged.number,
];

/** The result of one plant of `createPlants`. */
export type PlantResult<Input extends PlantInput = PlantInput> =
  | { plant: StoredPlant; error?: never; input: Input }
  | { plant?: never; error: PlantStoreError; input: Input };

/** An input that was read, and whose result was not yet yielded. */
interface Entry<Input extends PlantInput> {
  readonly input: Input;
  textLength: number;
  /** Resolves when the request has ended, and never rejects. Undefined for an invalid input. */
  settled: Promise<void> | undefined;
  /** Undefined until the request has ended, and when the whole call has failed. */
  result: PlantResult<Input> | undefined;
}

/** `failed`: the inputs threw the reason while the call was not stopped. */
type Inputs = { kind: 'open' } | { kind: 'ended' } | { kind: 'failed'; reason: unknown };

/**
 * One call of `createPlants`. Two loops run concurrently: one reads inputs while there is room, the
 * other yields results. Each loop waits for changes that the other makes.
 *
 * | state | event | next state | what is sent |
 * |---|---|---|---|
 * | reading | there is room | reading | the next plant |
 * | reading | the inputs end or throw | finishing | no new plant; retries go on |
 * | reading, finishing | an error of all plants, or an abort | stopping | nothing more |
 * | stopping | `DRAIN_TIMEOUT_MS` has passed | stopping | nothing; requests are abandoned |
 * | finishing, stopping | the last result was yielded | ended | nothing; then it may throw |
 * | any | the caller stops iterating | ended | nothing; requests are abandoned |
 */
export class BulkCreate<Input extends PlantInput> {
  readonly #service: ClientState;
  readonly #concurrency: number;
  readonly #ifRevisionOf: (input: Input) => number | undefined;
  readonly #call = new Call();
  /** In the order of the inputs. */
  readonly #entries: Entry<Input>[] = [];
  #textLength = 0;
  /** For each id in flight, the promise `settled` of its last entry. */
  readonly #lastOfId = new Map<bigint, Promise<void>>();
  #inputs: Inputs = { kind: 'open' };
  #drainTimer: ReturnType<typeof setTimeout> | undefined;
  readonly #changeListeners: (() => void)[] = [];

  /** @param ifRevisionOf what it throws ends the call, as what the inputs throw */
  constructor(
    service: ClientState,
    concurrency: number,
    ifRevisionOf: (input: Input) => number | undefined,
    onRetry: Call['onRetry'],
  ) {
    this.#service = service;
    this.#concurrency = concurrency;
    this.#ifRevisionOf = ifRevisionOf;
    this.#call.onRetry = onRetry;
  }

  /** Yields the results in the order of the inputs. To be called once. */
  async *results(
    inputs: Iterable<Input> | AsyncIterable<Input>,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<PlantResult<Input>, void, undefined> {
    const call = this.#call;
    const { calls } = this.#service;
    call.onStop.add(() => {
      this.#drainTimer = setTimeout(() => call.abandon(call.stopped?.reason), DRAIN_TIMEOUT_MS);
      this.#notifyChange();
    });
    calls.add(call);
    const onAbort = (): void => call.stop(signal?.reason);
    if (signal?.aborted) onAbort();
    signal?.addEventListener('abort', onAbort);
    try {
      void this.#readInputs(inputs);
      while (this.#entries.length > 0 || this.#isReading) {
        const first = this.#entries[0];
        if (first !== undefined) {
          await first.settled;
          if (first.result !== undefined) yield first.result;
          this.#entries.shift();
          this.#textLength -= first.textLength;
          this.#notifyChange();
        } else await this.#nextChange();
      }
      const failure = this.#inputs.kind === 'failed' ? this.#inputs : call.stopped;
      if (failure !== undefined) throw failure.reason;
    } finally {
      signal?.removeEventListener('abort', onAbort);
      calls.delete(call);
      call.abandon(undefined);
      clearTimeout(this.#drainTimer);
    }
  }

  get #isReading(): boolean {
    return this.#inputs.kind === 'open' && this.#call.stopped === undefined;
  }

  get #isFull(): boolean {
    return this.#entries.length >= this.#concurrency || this.#textLength >= IN_FLIGHT_TEXT_LENGTH_MAX;
  }

  async #readInputs(inputs: Iterable<Input> | AsyncIterable<Input>): Promise<void> {
    let end: Inputs = { kind: 'ended' };
    try {
      for await (const input of inputs) {
        if (!this.#isReading) break;
        this.#add(input);
        while (this.#isFull && this.#isReading) await this.#nextChange();
        if (!this.#isReading) break;
      }
    } catch (reason) {
      if (this.#call.stopped === undefined) end = { kind: 'failed', reason };
    }
    this.#inputs = end;
    this.#notifyChange();
  }

  #add(input: Input): void {
    const ifRevision = this.#ifRevisionOf(input);
    const entry: Entry<Input> = { input, textLength: 0, settled: undefined, result: undefined };
    this.#entries.push(entry);
    this.#notifyChange();
    let plant: NewPlant;
    try {
      // The input is copied now: the caller may reuse the object for the next plant.
      plant = newPlantOf(input);
    } catch (error) {
      entry.result = { error: error as PlantStoreError, input };
      return;
    }
    entry.textLength = plant.name.length + (plant.tag?.length ?? 0);
    this.#textLength += entry.textLength;
    const settle = (): Promise<void> => this.#settle(entry, plant, ifRevision);
    const previous = this.#lastOfId.get(plant.id);
    entry.settled = previous === undefined ? settle() : previous.then(settle);
    this.#lastOfId.set(plant.id, entry.settled);
  }

  async #settle(entry: Entry<Input>, plant: NewPlant, ifRevision: number | undefined): Promise<void> {
    const { input } = entry;
    try {
      entry.result = { plant: await sendPlant(this.#service, this.#call, plant, ifRevision), input };
    } catch (error) {
      if (error instanceof PlantStoreError && ERRORS_OF_ONE_PLANT.includes(error.error))
        entry.result = { error, input };
      else this.#call.stop(error);
    }
    if (entry.result !== undefined) this.#call.lastSettledMs = performance.now();
    if (this.#lastOfId.get(plant.id) === entry.settled) this.#lastOfId.delete(plant.id);
  }

  /** Resolves when an entry was added or removed, or when reading has ended. */
  #nextChange(): Promise<void> {
    return new Promise(resolve => this.#changeListeners.push(resolve));
  }

  #notifyChange(): void {
    for (const resolve of this.#changeListeners.splice(0)) resolve();
  }
}
