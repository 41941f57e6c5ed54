import type { ServerContext } from './server-context.ts';

/** In the last phase of a stop, a part of a request may become whole for this long. */
const LAST_PART_MAX_MS = 250;

/**
 * The last read of one connection: in the last phase of a stop, each connection reads once more,
 * what the kernel already has of its requests. After that, it waits for no further request, and only
 * `LAST_PART_MAX_MS` for the rest of one. The tables above the classes of a connection say what
 * happens in each state.
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
    return now - this.#closingSinceMs >= LAST_PART_MAX_MS;
  }

  /** When the last phase of a stop began, infinite before it; ms, monotonic clock. */
  get #closingSinceMs(): number {
    const { phase } = this.#context;
    return phase.kind === 'closing' ? phase.sinceMs : Number.POSITIVE_INFINITY;
  }
}
