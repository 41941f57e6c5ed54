import { TURN_REQUESTS_MAX } from '../contract/limits.ts';

/** A body takes about as long to read for each of these as a request takes without one. */
const LONG_BODY_BYTES = 4_096;

/**
 * Shares the turns of the event loop among connections.
 *
 * A socket on which requests wait is read again and again within one turn, up to 2 MiB of them (`uv__read` of libuv), and
 * so is each of the others. Where more comes than can be answered, such a turn takes seconds, in which nobody hears what
 * the store has confirmed long ago and the store has nothing to do. So a turn takes a number of requests, and connections
 * that have more wait for a later one, in order.
 */
export class RequestTurns {
  #taken = 0;
  #isNextDue = false;
  #waiting: (() => void)[] = [];

  /**
   * Counts a request that is to be taken in this turn, a long one as several.
   *
   * @returns false when the turn has taken all it may
   */
  take(bodyBytes: number): boolean {
    if (this.#taken >= TURN_REQUESTS_MAX) return false;
    this.#taken += 1 + bodyBytes / LONG_BODY_BYTES;
    this.#expectNext();
    return true;
  }

  /** Calls back in a later turn, behind all that wait already. */
  wait(goOn: () => void): void {
    this.#waiting.push(goOn);
    this.#expectNext();
  }

  #expectNext(): void {
    if (this.#isNextDue) return;
    this.#isNextDue = true;
    setImmediate(() => this.#begin());
  }

  #begin(): void {
    this.#isNextDue = false;
    this.#taken = 0;
    const waiting = this.#waiting;
    this.#waiting = [];
    let next = 0;
    while (next < waiting.length && this.#taken < TURN_REQUESTS_MAX) waiting[next++]!();
    // Those that went on and have still more wait behind those that did not.
    this.#waiting = [...waiting.slice(next), ...this.#waiting];
    if (this.#waiting.length > 0) this.#expectNext();
  }
}
