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
 * @returns a function that takes a line: 0 if it may be written now, else the ms until a retry
 */
function lineBucket({ burstLines, intervalMs }: typeof LOG_RATE): () => number {
  let left = burstLines;
  let countedAt = performance.now();
  return () => {
    const now = performance.now();
    left = Math.min(burstLines, left + (now - countedAt) / intervalMs);
    countedAt = now;
    if (left < 1) return (1 - left) * intervalMs;
    left--;
    return 0;
  };
}

/**
 * Logs when something begins to fail and when it works again, one line per change. If changes are
 * frequent, as on a nearly full disk, a failure is logged later, and only if it lasts until then.
 */
export class FailureLog {
  readonly #logFailure: (cause: unknown) => void;
  readonly #logRecovery: () => void;
  readonly #takeLine: () => number;
  /** The last failure, until recovery. */
  #failure: { cause: unknown } | undefined;
  /** Whether the last line was a failure. */
  #isFailureLogged = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(logFailure: (cause: unknown) => void, logRecovery: () => void, rate = LOG_RATE) {
    this.#logFailure = logFailure;
    this.#logRecovery = logRecovery;
    this.#takeLine = lineBucket(rate);
  }

  failed(cause: unknown): void {
    this.#failure = { cause };
    if (!this.#isFailureLogged && this.#timer === undefined) this.#logWhenAllowed();
  }

  recovered(): void {
    this.#failure = undefined;
    if (!this.#isFailureLogged) return;
    this.#isFailureLogged = false;
    this.#logRecovery();
  }

  #logWhenAllowed(): void {
    this.#timer = undefined;
    if (this.#failure === undefined) return;
    const delayMs = this.#takeLine();
    if (delayMs > 0) {
      this.#timer = setTimeout(() => this.#logWhenAllowed(), delayMs).unref();
      return;
    }
    this.#isFailureLogged = true;
    this.#logFailure(this.#failure.cause);
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
    if (takeLine() > 0) {
      unsaid++;
      return;
    }
    log(cause, unsaid);
    unsaid = 0;
  };
}
