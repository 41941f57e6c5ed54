import type { PlantWrite } from './plant-commits.ts';

/** Plants of one id in one batch. Their revisions are inserted one after the other. */
export const BATCH_REPEATS_MAX = 64;

/**
 * Holds plants back so that each id is in one batch in flight at a time, for an engine that is not
 * sequential. So of two plants of a connection, the later one never becomes the earlier revision.
 */
export class IdsInFlight {
  /** The ids of all batches in flight. */
  readonly #inFlight = new Set<bigint>();
  /** The number of plants of each id in the batch that is being made. */
  readonly #batch = new Map<bigint, number>();
  /** `hasFree` has examined so many plants from the start of the queue. */
  #examined = 0;
  /** The number of the examined plants that have no id in flight. */
  #examinedFree = 0;

  /** Whether a plant with this id must stay queued when a batch is made. */
  mustWait(id: bigint): boolean {
    return this.#inFlight.has(id) || this.#batch.get(id) === BATCH_REPEATS_MAX;
  }

  /** A plant with this id was added to the batch that is being made. */
  add(id: bigint): void {
    this.#batch.set(id, (this.#batch.get(id) ?? 0) + 1);
  }

  /** The plants of the batch have left the queue, and are in flight. */
  batchMade(): void {
    for (const id of this.#batch.keys()) this.#inFlight.add(id);
    this.#batch.clear();
    this.#examineAgain();
  }

  batchEnded(batch: readonly PlantWrite[]): void {
    for (const { plant } of batch) this.#inFlight.delete(plant.id);
    this.#examineAgain();
  }

  /** Whether so many plants of the queue can be in a batch now. */
  hasFree(queue: readonly PlantWrite[], plantsMin: number): boolean {
    if (this.#inFlight.size === 0 || queue.length < plantsMin) return queue.length >= plantsMin;
    // There may be thousands of plants that must wait, so each call continues where the last one
    // ended.
    while (this.#examinedFree < plantsMin && this.#examined < queue.length) {
      if (!this.#inFlight.has(queue[this.#examined++]!.plant.id)) this.#examinedFree++;
    }
    return this.#examinedFree >= plantsMin;
  }

  /** Starts over after a change of the start of the queue, or of the ids in flight. */
  #examineAgain(): void {
    this.#examined = 0;
    this.#examinedFree = 0;
  }
}
