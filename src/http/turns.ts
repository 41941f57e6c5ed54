/**
 * Shares each event-loop iteration among connections: their requests are taken for a few milliseconds, and those that have
 * more wait, in order, for the next iteration.
 *
 * Node reads a socket on which requests wait again and again within one iteration, up to 2 MiB (`uv__read` of libuv), and
 * then the next socket. Without turns such an iteration takes seconds, in which no commit is heard of and the store idles.
 */
export class Turns {
  readonly #turnMs: number;
  #endsAt = 0;
  #isUnderWay = false;
  #waiting: (() => void)[] = [];

  /** @param turnMs time that one iteration spends on requests */
  constructor(turnMs: number) {
    this.#turnMs = turnMs;
  }

  /**
   * Begins the turn of this iteration, if it has not begun.
   *
   * @param now given by a caller that has just read the clock, which is 0.1 µs of the 24 of a create
   * @returns whether one more request may be taken in this turn
   */
  hasTime(now = performance.now()): boolean {
    if (!this.#isUnderWay) this.#begin(now);
    return now < this.#endsAt;
  }

  /** Calls back in a later iteration, behind all that wait already. */
  wait(callback: () => void): void {
    this.#waiting.push(callback);
    if (!this.#isUnderWay) this.#begin(performance.now());
  }

  #begin(now: number): void {
    this.#endsAt = now + this.#turnMs;
    this.#isUnderWay = true;
    setImmediate(() => this.#next());
  }

  #next(): void {
    this.#isUnderWay = false;
    if (this.#waiting.length === 0) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    let next = 0;
    while (next < waiting.length && this.hasTime()) waiting[next++]!();
    // Those that were called and wait again go behind those that were not called.
    this.#waiting = [...waiting.slice(next), ...this.#waiting];
  }
}
