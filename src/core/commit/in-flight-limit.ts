/** A plant that would wait longer than this, at the rate of the last batches, gets 503 at once. */
export const QUEUE_TIME_MAX_MS = 500;
/** Plants that may always be in flight. Small batches do not show the rate of the engine. */
export const IN_FLIGHT_PLANTS_MIN = 1_024;

/**
 * Limits the plants in flight so that the next plant waits at most `QUEUE_TIME_MAX_MS`. The rate is
 * the number of plants ahead of the last one, divided by the time that it waited (Little's law). A
 * short queue does not show the rate that the engine can reach: then the limit stays.
 */
export class InFlightLimit {
  #plants = Number.POSITIVE_INFINITY;

  /** The number of plants that may be queued or in a batch. */
  get plants(): number {
    return this.#plants;
  }

  /**
   * A batch has ended.
   *
   * @param ahead how many plants were in flight when its last plant arrived
   * @param waitedMs how long that plant has waited
   */
  update(ahead: number, waitedMs: number): void {
    if (ahead < IN_FLIGHT_PLANTS_MIN / 2) return;
    this.#plants = Math.max((ahead * QUEUE_TIME_MAX_MS) / waitedMs, IN_FLIGHT_PLANTS_MIN);
  }
}
