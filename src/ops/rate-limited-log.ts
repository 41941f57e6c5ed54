/** Limit for a repeated log line: a burst of `burstLines`, then one line per interval. */
export const LOG_RATE = { burstLines: 20, intervalMs: 10_000 };

/** A logger, such as a pino logger. Each call writes one line. */
export interface ServiceLog {
  info(message: string): void;
  warn(details: object, message: string): void;
  error(details: object, message: string): void;
}

/**
 * A token bucket for log lines.
 *
 * @returns a function that takes a line, and returns whether it may be written now
 */
function lineBucket({ burstLines, intervalMs }: typeof LOG_RATE): () => boolean {
  let left = burstLines;
  let countedAt = performance.now();
  return () => {
    const now = performance.now();
    left = Math.min(burstLines, left + (now - countedAt) / intervalMs);
    countedAt = now;
    if (left < 1) return false;
    left--;
    return true;
  };
}

/**
 * Logs when something begins to fail and when it works again, one line per change. If changes are
 * frequent, as on a nearly full disk, only a failure that comes after the interval is logged.
 */
export class FailureLog {
  readonly #logFailure: (cause: unknown) => void;
  readonly #logRecovery: () => void;
  readonly #takeLine: () => boolean;
  /** Whether the last line was a failure. */
  #isFailureLogged = false;

  constructor(logFailure: (cause: unknown) => void, logRecovery: () => void, rate = LOG_RATE) {
    this.#logFailure = logFailure;
    this.#logRecovery = logRecovery;
    this.#takeLine = lineBucket(rate);
  }

  failed(cause: unknown): void {
    if (this.#isFailureLogged || !this.#takeLine()) return;
    this.#isFailureLogged = true;
    this.#logFailure(cause);
  }

  recovered(): void {
    if (!this.#isFailureLogged) return;
    this.#isFailureLogged = false;
    this.#logRecovery();
  }
}

/**
 * Makes a log for an event that may repeat often.
 *
 * @param log `unsaid` is the number of events since the last line that were not logged
 */
export function rateLimitedLog(
  log: (cause: unknown, unsaid: number) => void,
  rate = LOG_RATE,
): (cause: unknown) => void {
  const takeLine = lineBucket(rate);
  let unsaid = 0;
  return cause => {
    if (!takeLine()) {
      unsaid++;
      return;
    }
    log(cause, unsaid);
    unsaid = 0;
  };
}
