/** Connections that wait for a later turn of the event loop, in order. */
export class TurnQueue {
  readonly #onTurn: () => void;
  readonly #hasRoom: () => boolean;
  #isNextDue = false;
  #waiting: (() => void)[] = [];

  /**
   * @param onTurn is called as a turn begins
   * @param hasRoom says whether the turn may take one more
   */
  constructor(onTurn: () => void, hasRoom: () => boolean) {
    this.#onTurn = onTurn;
    this.#hasRoom = hasRoom;
  }

  /** Calls back in a later turn, behind all that wait already. */
  wait(goOn: () => void): void {
    this.#waiting.push(goOn);
    this.expectNext();
  }

  /** Has a turn begin, also where nobody waits for it. */
  expectNext(): void {
    if (this.#isNextDue) return;
    this.#isNextDue = true;
    setImmediate(() => this.#begin());
  }

  #begin(): void {
    this.#isNextDue = false;
    this.#onTurn();
    const waiting = this.#waiting;
    this.#waiting = [];
    let next = 0;
    while (next < waiting.length && this.#hasRoom()) waiting[next++]!();
    // Those that went on and have still more wait behind those that did not.
    this.#waiting = [...waiting.slice(next), ...this.#waiting];
    if (this.#waiting.length > 0) this.expectNext();
  }
}
