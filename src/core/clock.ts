/**
 * The source of time and timers for the parts that are simulated (`test/simulation/parts.ts`). The
 * simulation replaces it.
 */
export interface Clock {
  /** Ms on the monotonic clock. It stands still while the machine is suspended. */
  now(): number;
  /** Ms since 1970 UTC. It jumps when the system's time is set. */
  wallNow(): number;
  /**
   * Calls back once, unless it is disposed before.
   * @param keepsAlive whether the process waits for it, by default true
   */
  setTimer(callback: () => void, delayMs: number, keepsAlive?: boolean): Disposable;
  /** Calls back as soon as the event loop has polled for events, like `setImmediate`. */
  nextIteration(callback: () => void): void;
}

export const DAY_MS = 86_400_000;

/** A moment, on both clocks of a {@link Clock}. */
export interface Moment {
  monotonicMs: number;
  wallMs: number;
}

export const SYSTEM_CLOCK: Clock = {
  now: () => performance.now(),
  wallNow: () => Date.now(),
  setTimer(callback, delayMs, keepsAlive = true) {
    const timer = setTimeout(callback, delayMs);
    return keepsAlive ? timer : timer.unref();
  },
  nextIteration: callback => void setImmediate(callback),
};

/** The present moment. */
export function momentOf(clock: Clock): Moment {
  return { monotonicMs: clock.now(), wallMs: clock.wallNow() };
}

/**
 * Whether less than `ageMaxMs` has passed since a moment.
 *
 * The monotonic clock of Node stands still while the machine is suspended, and the wall clock may
 * be set. So the moment must be recent on both. (`os.uptime` has neither fault, but is slow.)
 */
export function isRecent(clock: Clock, { monotonicMs, wallMs }: Moment, ageMaxMs: number): boolean {
  return clock.now() - monotonicMs < ageMaxMs && Math.abs(clock.wallNow() - wallMs) < ageMaxMs;
}

/** Settles after a delay, or earlier, once the signal is aborted. It keeps the process alive. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    if (signal?.aborted) {
      resolve();
      return;
    }
    const end = (): void => {
      timer[Symbol.dispose]();
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = clock.setTimer(end, delayMs);
    signal?.addEventListener('abort', end);
  });
}

/** Calls back in each interval until it is disposed. The callback may throw, or dispose it. */
export function repeat(clock: Clock, callback: () => void, intervalMs: number): Disposable {
  let timer: Disposable;
  const setTimer = (): void => {
    timer = clock.setTimer(() => {
      setTimer();
      callback();
    }, intervalMs);
  };
  setTimer();
  return { [Symbol.dispose]: () => timer[Symbol.dispose]() };
}
