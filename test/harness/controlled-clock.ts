import type { Clock } from '../../src/core/clock.ts';

/** A clock that begins at the time of the system, and advances only when a test says so. */
export class ControlledClock implements Clock {
  // Whole numbers, so that sums are exact.
  #nowMs = Math.round(performance.now());
  #wallMs = Date.now();
  readonly #timers = new Set<{ atMs: number; callback: () => void }>();

  now(): number {
    return this.#nowMs;
  }

  wallNow(): number {
    return this.#wallMs;
  }

  setTimer(callback: () => void, delayMs: number): Disposable {
    const timer = { atMs: this.#nowMs + delayMs, callback };
    this.#timers.add(timer);
    return { [Symbol.dispose]: () => this.#timers.delete(timer) };
  }

  nextIteration(callback: () => void): void {
    setImmediate(callback);
  }

  /** Calls the timers that end meanwhile, in order, each at its time. */
  advance(ms: number): void {
    const endMs = this.#nowMs + ms;
    for (;;) {
      const [next] = [...this.#timers].sort((one, other) => one.atMs - other.atMs);
      if (next === undefined || next.atMs > endMs) break;
      this.#timers.delete(next);
      this.#set(next.atMs);
      next.callback();
    }
    this.#set(endMs);
  }

  /** As when an operator sets the clock. */
  setWall(wallMs: number): void {
    this.#wallMs = wallMs;
  }

  #set(nowMs: number): void {
    this.#wallMs += nowMs - this.#nowMs;
    this.#nowMs = nowMs;
  }
}
