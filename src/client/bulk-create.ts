import type { NewPlant } from '../contract/plant.ts';
import { IN_FLIGHT_TEXT_LENGTH_MAX, LAST_RESPONSES_MS } from './limits.ts';
import { newPlantOf, type PlantInput } from './plant-input.ts';
import { ERRORS_OF_ONE_PLANT, PlantStoreError } from './plant-store-error.ts';
import { type Call, PlantSending, type Service } from './retrying-request.ts';
import type { StoredPlant } from './stored-plant.ts';

/** What became of one plant of `createPlants`. */
export type PlantResult<Input extends PlantInput = PlantInput> =
  | { plant: StoredPlant; error?: never; input: Input }
  | { plant?: never; error: PlantStoreError; input: Input };

/** An input that was taken, until its result is handed out. */
interface Entry<Input extends PlantInput> {
  textLength: number;
  /** Undefined for what is not sent. */
  sending: PlantSending | undefined;
  /** Settles when it is known what became of it, and never fails; undefined for what is not sent. */
  settled: Promise<void> | undefined;
  /** There is none either where the whole call has failed. */
  result: PlantResult<Input> | undefined;
}

/**
 * One call of `createPlants`. Two loops run beside each other, and each waits for the changes that the other makes: one
 * takes inputs while there is room, the other hands out results.
 *
 * | event | then |
 * |---|---|
 * | the inputs end or fail | what was taken is sent and tried again as before; then the failure is thrown |
 * | an error that concerns all plants, or the signal | no input is taken and no try begins; what was sent has 5 s; then it is thrown |
 * | the caller wants no more results | all is given up |
 */
export class ManyPlants<Input extends PlantInput> {
  readonly #service: Service;
  readonly #concurrency: number;
  readonly #call: Call;
  /** In the order of the inputs. */
  readonly #entries: Entry<Input>[] = [];
  #textLength = 0;
  /** Of the entries with one id that are not settled, the last: when it settles. */
  readonly #lastOfId = new Map<bigint, Promise<void>>();
  #isRead = false;
  /** No input is taken and no try begins any more. */
  #isStopped = false;
  #failure: { reason: unknown } | undefined;
  #lastResponsesTimer: ReturnType<typeof setTimeout> | undefined;
  readonly #waiting: (() => void)[] = [];

  constructor(service: Service, concurrency: number, onRetry: Call['onRetry']) {
    this.#service = service;
    this.#concurrency = concurrency;
    this.#call = { onRetry, settledMs: 0 };
  }

  async *results(
    inputs: Iterable<Input> | AsyncIterable<Input>,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<PlantResult<Input>, void, undefined> {
    const onAbort = (): void => this.#fail(signal?.reason);
    if (signal?.aborted) onAbort();
    signal?.addEventListener('abort', onAbort);
    try {
      void this.#read(inputs);
      while (this.#entries.length > 0 || !this.#takesNoMore) {
        const first = this.#entries[0];
        if (first === undefined) await this.#change();
        else {
          await first.settled;
          if (first.result !== undefined) yield first.result;
          this.#entries.shift();
          this.#textLength -= first.textLength;
          this.#changed();
        }
      }
      if (this.#failure !== undefined) throw this.#failure.reason;
    } finally {
      signal?.removeEventListener('abort', onAbort);
      clearTimeout(this.#lastResponsesTimer);
      this.#isStopped = true;
      this.#abandonAll(undefined);
      this.#changed();
    }
  }

  get #takesNoMore(): boolean {
    return this.#isRead || this.#isStopped;
  }

  get #isFull(): boolean {
    return this.#entries.length >= this.#concurrency || this.#textLength >= IN_FLIGHT_TEXT_LENGTH_MAX;
  }

  async #read(inputs: Iterable<Input> | AsyncIterable<Input>): Promise<void> {
    try {
      for await (const input of inputs) {
        if (this.#takesNoMore) break;
        this.#take(input);
        while (this.#isFull && !this.#takesNoMore) await this.#change();
        if (this.#takesNoMore) break;
      }
    } catch (reason) {
      this.#failure ??= { reason };
    }
    this.#isRead = true;
    this.#changed();
  }

  #take(input: Input): void {
    const entry: Entry<Input> = { textLength: 0, sending: undefined, settled: undefined, result: undefined };
    this.#entries.push(entry);
    this.#changed();
    let plant: NewPlant;
    try {
      // Now: the caller may use the object again for the next plant.
      plant = newPlantOf(input);
    } catch (error) {
      entry.result = { error: error as PlantStoreError, input };
      return;
    }
    entry.textLength = plant.name.length + (plant.tag?.length ?? 0);
    this.#textLength += entry.textLength;
    const { id } = plant;
    const sending = new PlantSending(this.#service, this.#call, plant);
    entry.sending = sending;
    const settle = async (): Promise<void> => {
      try {
        entry.result = { plant: await sending.run(), input };
      } catch (error) {
        if (error instanceof PlantStoreError && ERRORS_OF_ONE_PLANT.includes(error.error))
          entry.result = { error, input };
        else this.#fail(error);
      }
      if (entry.result !== undefined) this.#call.settledMs = performance.now();
      if (this.#lastOfId.get(id) === entry.settled) this.#lastOfId.delete(id);
    };
    const before = this.#lastOfId.get(id);
    entry.settled = before === undefined ? settle() : before.then(settle);
    this.#lastOfId.set(id, entry.settled);
  }

  #fail(reason: unknown): void {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#failure ??= { reason };
    this.#lastResponsesTimer = setTimeout(() => this.#abandonAll(reason), LAST_RESPONSES_MS);
    for (const { sending } of this.#entries) sending?.stop(reason);
    this.#changed();
  }

  #abandonAll(reason: unknown): void {
    for (const { sending } of this.#entries) sending?.abandon(reason);
  }

  /** Settles when there is a new entry, or room for one, or no more will come. */
  #change(): Promise<void> {
    return new Promise(resolve => this.#waiting.push(resolve));
  }

  #changed(): void {
    for (let resolve = this.#waiting.pop(); resolve !== undefined; resolve = this.#waiting.pop()) resolve();
  }
}
