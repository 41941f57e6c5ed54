import type { PlantSearch } from '../../engines/search/plant-search.ts';

/** The next count begins after so many times the duration of the last one, or later. */
const PAUSE_SHARE = 20;
const PAUSE_MIN_MS = 5_000;
/** A count of a very large store, or beside many creates, ends incomplete. */
const COUNT_MAX_MS = 60_000;
const PART_MS = 400;

/** How many plants a count found that ended at `at`, in ms since 1970. */
interface CountedPlants {
  plants: number;
  at: number;
  /** Whether all plants were counted. */
  isComplete: boolean;
}

/** The number of plants in the store, counted by searches while operators look at it. */
export class PlantTotal implements Disposable {
  readonly #search: Pick<PlantSearch, 'count'>;
  readonly #onError: (cause: unknown) => void;
  #counted: CountedPlants | undefined;
  /** When the next count may begin; ms, on the monotonic clock. Infinity while one runs. */
  #nextAt = 0;
  #isClosed = false;

  constructor(search: Pick<PlantSearch, 'count'>, onError: (cause: unknown) => void) {
    this.#search = search;
    this.#onError = onError;
  }

  /** Returns the last count, and begins the next one if it is due. @returns null before the first */
  read(): CountedPlants | null {
    if (performance.now() >= this.#nextAt) void this.#count();
    return this.#counted ?? null;
  }

  [Symbol.dispose](): void {
    this.#isClosed = true;
  }

  async #count(): Promise<void> {
    const beganAt = performance.now();
    this.#nextAt = Number.POSITIVE_INFINITY;
    const elapsedMs = (): number => performance.now() - beganAt;
    try {
      let plants = 0;
      let from: bigint | undefined;
      do {
        const part = await this.#search.count({ from }, PART_MS);
        plants += part.plants;
        from = part.next;
      } while (from !== undefined && elapsedMs() < COUNT_MAX_MS && !this.#isClosed);
      this.#counted = { plants, at: Date.now(), isComplete: from === undefined };
    } catch (cause) {
      // A service that closes ends its searches.
      if (!this.#isClosed) this.#onError(cause);
    } finally {
      this.#nextAt = performance.now() + Math.max(PAUSE_MIN_MS, PAUSE_SHARE * elapsedMs());
    }
  }
}
