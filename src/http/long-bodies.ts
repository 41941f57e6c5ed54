import { type NewPlantReading, readNewPlantInSlices } from '../contract/plant.ts';
import { LONG_BODY_BUDGET_MS } from './limits.ts';
import { TickBudget } from './tick-budget.ts';

/**
 * Reads long bodies one after the other, for a few milliseconds of each event-loop iteration. So other requests do not wait
 * for a body of a million members, and only one body has its names in memory.
 *
 * A thread would leave more of the main thread to others. But JSON.parse makes up to 1.3 GiB of 8 MiB there, too, so it would
 * need the same reader; without a thread there is none to start, to close and to replace when it dies.
 */
export class LongBodies {
  readonly #budget = new TickBudget(LONG_BODY_BUDGET_MS);
  /** Settles when all bodies that came are read. */
  #allRead: Promise<unknown> = Promise.resolve();

  /**
   * @param isAwaited whether anybody still waits for the reading
   * @returns undefined where nobody does
   */
  read(body: Uint8Array, isAwaited: () => boolean): Promise<NewPlantReading | undefined> {
    const reading = this.#allRead.then(() => this.#readInSlices(body, isAwaited));
    // One that fails holds up no other.
    this.#allRead = reading.catch(() => {});
    return reading;
  }

  async #readInSlices(body: Uint8Array, isAwaited: () => boolean): Promise<NewPlantReading | undefined> {
    const slices = readNewPlantInSlices(body);
    for (;;) {
      if (!this.#budget.hasTime()) await new Promise<void>(resolve => this.#budget.wait(resolve));
      if (!isAwaited()) return undefined;
      const slice = slices.next();
      if (slice.done) return slice.value;
    }
  }
}
