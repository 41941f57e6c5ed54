import { SERVER_TURN_MS } from '../contract/limits.ts';

/**
 * Shares the time that Node's HTTP server gets of each turn of the event loop among its connections, in order. However much
 * comes on however many of them, ordinary requests and commits are heard of after so long.
 */
export class ServerTurns {
  #isNextDue = false;
  #waiting: (() => void)[] = [];

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
    const waiting = this.#waiting;
    this.#waiting = [];
    const untilMs = performance.now() + SERVER_TURN_MS;
    let next = 0;
    do waiting[next++]!();
    while (next < waiting.length && performance.now() < untilMs);
    // Those that went on and have still more wait behind those that did not.
    this.#waiting = [...waiting.slice(next), ...this.#waiting];
    if (this.#waiting.length > 0) this.#expectNext();
  }
}
