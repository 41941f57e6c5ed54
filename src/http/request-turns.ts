import { BODY_BYTES_LIKE_A_REQUEST, SERVER_TURN_MS } from './limits.ts';

/**
 * Shares a part of each event-loop iteration among connections, in order.
 *
 * A socket on which requests wait is read again and again within one iteration, up to 2 MiB of them (`uv__read` of libuv),
 * and so is each of the others. Where more comes than can be answered, such an iteration takes seconds, in which nobody hears
 * what the store has confirmed long ago and the store has nothing to do. So an iteration takes a part of it, and connections
 * that have more wait for a later one.
 */
abstract class Turns {
  #isNextDue = false;
  #waiting: (() => void)[] = [];

  /** Calls back in a later turn, behind all that wait already. */
  wait(goOn: () => void): void {
    this.#waiting.push(goOn);
    this.expectNext();
  }

  /** Has a turn begin in the next iteration, also where nobody waits for it. */
  protected expectNext(): void {
    if (this.#isNextDue) return;
    this.#isNextDue = true;
    setImmediate(() => this.#begin());
  }

  /** Called as a turn begins. */
  protected abstract renew(): void;
  /** Whether this turn may take one more. */
  protected abstract get hasRoom(): boolean;

  #begin(): void {
    this.#isNextDue = false;
    this.renew();
    const waiting = this.#waiting;
    this.#waiting = [];
    let next = 0;
    while (next < waiting.length && this.hasRoom) waiting[next++]!();
    // Those that went on and have still more wait behind those that did not.
    this.#waiting = [...waiting.slice(next), ...this.#waiting];
    if (this.#waiting.length > 0) this.expectNext();
  }
}

/** Turns of so many requests each, on the fast path. */
export class RequestTurns extends Turns {
  #taken = 0;
  readonly #requestsMax: number;

  constructor(requestsMax: number) {
    super();
    this.#requestsMax = requestsMax;
  }

  /**
   * Counts a request that is to be taken in this turn, a long one as several.
   *
   * @returns false when the turn has taken all it may
   */
  take(bodyBytes: number): boolean {
    if (!this.hasRoom) return false;
    this.#taken += 1 + bodyBytes / BODY_BYTES_LIKE_A_REQUEST;
    this.expectNext();
    return true;
  }

  protected override renew(): void {
    this.#taken = 0;
  }

  protected override get hasRoom(): boolean {
    return this.#taken < this.#requestsMax;
  }
}

/** Turns of so much time each, for Node's HTTP server: the fast path and commits are heard of in between. */
export class ServerTurns extends Turns {
  #untilMs = 0;

  protected override renew(): void {
    this.#untilMs = performance.now() + SERVER_TURN_MS;
  }

  protected override get hasRoom(): boolean {
    return performance.now() < this.#untilMs;
  }
}
