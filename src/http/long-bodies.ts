import { type NewPlantReading, readNewPlantInSlices } from '../contract/plant.ts';
import { TickBudget } from './tick-budget.ts';

/** Time per tick for the reading of bodies longer than {@link SHORT_BODY_BYTES_MAX}. */
const LONG_BODY_BUDGET_MS = 2;

/**
 * Reads long bodies one after the other, for a few milliseconds of each tick. So other requests do
 * not wait for a body of a million members, and only one body has its names in memory.
 *
 * A thread would need the same reader, because JSON.parse takes too much memory there, too. It
 * would also have to be started, closed, and replaced when it dies.
 */
export class LongBodies {
  readonly #budget = new TickBudget(LONG_BODY_BUDGET_MS);
  /** Settles when all bodies so far are read. */
  #allRead: Promise<unknown> = Promise.resolve();

  /** @returns undefined if `isAwaited` returns false: the client does not wait for the response */
  read(body: Uint8Array, isAwaited: () => boolean): Promise<NewPlantReading | undefined> {
    const reading = this.#allRead.then(() => this.#readInSlices(body, isAwaited));
    // An error does not stop the bodies after it.
    this.#allRead = reading.catch(() => {});
    return reading;
  }

  async #readInSlices(body: Uint8Array, isAwaited: () => boolean): Promise<NewPlantReading | undefined> {
    const slices = readNewPlantInSlices(body);
    for (;;) {
      if (!this.#budget.hasTime()) await new Promise<void>(resolve => this.#budget.defer(resolve));
      if (!isAwaited()) return undefined;
      const slice = slices.next();
      if (slice.done) return slice.value;
    }
  }
}
