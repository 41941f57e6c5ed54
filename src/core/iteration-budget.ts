import type { Clock } from './clock.ts';

/**
 * Shares each event-loop iteration (tick) among connections. Requests are processed for a few
 * milliseconds of it. Connections with more requests wait, in order, for the next tick.
 *
 * Without this limit, a tick under load takes seconds, because libuv (`uv__read`) reads up to 2 MiB
 * from each socket. Until such a tick ends, the service learns of no commit, and the store is idle.
 */
export class IterationBudget {
  readonly #budgetMs: number;
  readonly #clock: Clock;
  #endsAt = 0;
  #hasStarted = false;
  #deferred = new Set<() => void>();

  constructor(budgetMs: number, clock: Clock) {
    this.#budgetMs = budgetMs;
    this.#clock = clock;
  }

  /** Whether this tick has time for one more request. The first call in a tick starts its time. */
  hasTime(now = this.#clock.now()): boolean {
    if (!this.#hasStarted) {
      this.#hasStarted = true;
      this.#endsAt = now + this.#budgetMs;
      this.#clock.nextIteration(() => this.#startIteration());
    }
    return now < this.#endsAt;
  }

  /** Calls back in a later tick, after the callbacks that wait already. Calls back once. */
  defer(callback: () => void): void {
    this.#deferred.add(callback);
    this.hasTime();
  }

  /** Resolves when {@link defer} would call back. */
  nextIteration(): Promise<void> {
    return new Promise(resolve => this.defer(resolve));
  }

  #startIteration(): void {
    this.#hasStarted = false;
    const callbacks = this.#deferred;
    this.#deferred = new Set();
    for (const callback of callbacks) {
      if (!this.hasTime()) break;
      callbacks.delete(callback);
      callback();
    }
    // Callbacks that were deferred again come after those that were not called yet.
    for (const callback of this.#deferred) callbacks.add(callback);
    this.#deferred = callbacks;
  }
}
