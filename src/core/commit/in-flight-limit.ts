/** A plant that would wait longer than this, at the rate of the last batches, gets 503 at once. */
export const QUEUE_TIME_MAX_MS = 500;
/** Plants that may always be in flight. Small batches do not show the rate of the engine. */
export const IN_FLIGHT_PLANTS_MIN = 1_024;
/**
 * Behind fewer plants, the time of a plant does not show the rate that the engine can reach. It is
 * below `IN_FLIGHT_PLANTS_MIN`, the lowest limit. So batches are measured at any limit, and a limit
 * that has fallen can rise again.
 */
const MEASURED_PLANTS_MIN = IN_FLIGHT_PLANTS_MIN / 2;

/**
 * Limits the plants in flight so that the next plant waits at most `QUEUE_TIME_MAX_MS`. The rate is
 * the number of plants ahead of the last one, divided by the time that it waited (Little's law).
 * A batch behind fewer than `MEASURED_PLANTS_MIN` plants does not change the limit.
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
    if (ahead < MEASURED_PLANTS_MIN) return;
    this.#plants = Math.max((ahead * QUEUE_TIME_MAX_MS) / waitedMs, IN_FLIGHT_PLANTS_MIN);
  }
}
