/** What parts of the service read the time from, and set timers with. Tests control it. */
export interface Clock {
  /** Ms on the monotonic clock. It stands still while the machine is suspended. */
  now(): number;
  /** Ms since 1970 UTC. It may be set. */
  wallNow(): number;
  /** Calls back once, unless it is disposed before. */
  setTimer(callback: () => void, delayMs: number): Disposable;
}

export const SYSTEM_CLOCK: Clock = {
  now: () => performance.now(),
  wallNow: () => Date.now(),
  setTimer: (callback, delayMs) => setTimeout(callback, delayMs),
};
