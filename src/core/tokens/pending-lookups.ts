import type { Clock } from '../clock.ts';

/** Lookups that are resolved per event-loop iteration. */
const RESOLVED_AT_A_TIME_MAX = 16;

interface PendingLookup {
  /** When the lookup began; ms, monotonic clock. */
  since: number;
  resolve: () => void;
}

/**
 * Lookups that wait for a refresh of the tokens, in the order in which they began. There may be
 * thousands, with guessed tokens, so they take many event-loop iterations: requests with known
 * tokens do not wait for them.
 */
export class PendingLookups {
  readonly #clock: Clock;
  readonly #pending: PendingLookup[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get isEmpty(): boolean {
    return this.#pending.length === 0;
  }

  /** Adds a lookup that begins now, and waits until it is resolved. */
  wait(since: number): Promise<void> {
    return new Promise(resolve => this.#pending.push({ since, resolve }));
  }

  /** Resolves the lookups that have waited since then, or longer. */
  resolve(since: number): void {
    const later = this.#pending.findIndex(lookup => lookup.since > since);
    this.#resolveInGroups(this.#pending.splice(0, later === -1 ? this.#pending.length : later));
  }

  /** Resolves all lookups at once. */
  end(): void {
    for (const { resolve } of this.#pending.splice(0)) resolve();
  }

  #resolveInGroups(lookups: PendingLookup[]): void {
    for (const { resolve } of lookups.splice(0, RESOLVED_AT_A_TIME_MAX)) resolve();
    if (lookups.length > 0) this.#clock.nextIteration(() => this.#resolveInGroups(lookups));
  }
}
