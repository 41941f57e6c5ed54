import type { ServerContext } from './server-context.ts';

/** In the last phase of a stop, a part of a request may become whole for this long. */
const LAST_PART_MS_MAX = 250;

/**
 * The last read of one connection: in the last phase of a stop, each connection reads once more.
 *
 * | what the connection waits for | when it ends |
 * |---|---|
 * | the next request | after its pending responses |
 * | the rest of a header section | after the last read, or `LAST_PART_MS_MAX` without one; 503 |
 * | the rest of the body of a plain create | after `LAST_PART_MS_MAX`; 503 |
 * | the rest of a rejected request | one tick after the last read, instead of `DISCARD_TICKS` |
 * | anything else | as in the other phases |
 *
 * The tables of `connection-state.ts` have each of these rules where its state is.
 */
export class LastRead {
  readonly #context: ServerContext;
  /** When bytes last arrived during a stop; ms, monotonic clock. */
  #receivedAt = Number.NEGATIVE_INFINITY;

  constructor(context: ServerContext) {
    this.#context = context;
  }

  /** Bytes arrived during a stop. @param now ms, monotonic clock */
  receive(now: number): void {
    this.#receivedAt = now;
  }

  /** Whether the connection has read in the last phase of a stop. */
  get isOver(): boolean {
    return this.#receivedAt >= this.#closingSinceMs;
  }

  /** Whether the time for the rest of a request is over. @param now ms, monotonic clock */
  isTooLate(now: number): boolean {
    return now - this.#closingSinceMs >= LAST_PART_MS_MAX;
  }

  /** When the last phase of a stop began, infinite before it; ms, monotonic clock. */
  get #closingSinceMs(): number {
    const { phase } = this.#context;
    return phase.kind === 'closing' ? phase.sinceMs : Number.POSITIVE_INFINITY;
  }
}
