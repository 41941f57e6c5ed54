import { TurnQueue } from './turn-queue.ts';

/** So much of a body takes about as long to read and to answer as a request without one (`npm run torture -- --only floods`). */
const BODY_BYTES_LIKE_A_REQUEST = 2_048;

/**
 * Shares a part of each turn of the event loop among connections.
 *
 * A socket on which requests wait is read again and again within one turn, up to 2 MiB of them (`uv__read` of libuv), and
 * so is each of the others. Where more comes than can be answered, such a turn takes seconds, in which nobody hears what
 * the store has confirmed long ago and the store has nothing to do. So a turn takes a number of requests, and connections
 * that have more wait for a later one, in order.
 */
export class RequestTurns {
  #taken = 0;
  readonly #requestsMax: number;
  readonly #queue: TurnQueue;

  /** @param requestsMax in a turn */
  constructor(requestsMax: number) {
    this.#requestsMax = requestsMax;
    this.#queue = new TurnQueue(
      () => {
        this.#taken = 0;
      },
      () => this.#hasRoom,
    );
  }

  get #hasRoom(): boolean {
    return this.#taken < this.#requestsMax;
  }

  /**
   * Counts a request that is to be taken in this turn, a long one as several.
   *
   * @returns false when the turn has taken all it may
   */
  take(bodyBytes: number): boolean {
    if (!this.#hasRoom) return false;
    this.#taken += 1 + bodyBytes / BODY_BYTES_LIKE_A_REQUEST;
    this.#queue.expectNext();
    return true;
  }

  /** Calls back in a later turn, behind all that wait already. */
  wait(goOn: () => void): void {
    this.#queue.wait(goOn);
  }
}
