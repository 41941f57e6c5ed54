import { LOG_RATE } from './limits.ts';

/** A log of one line for each message; a pino logger is one. */
export interface ServiceLog {
  info(message: string): void;
  warn(details: object, message: string): void;
  error(details: object, message: string): void;
}

/**
 * A token bucket for lines.
 *
 * @returns takes a line: 0 when it may be said now, otherwise after how many ms to ask again
 */
function linesOf({ linesAtOnce, intervalMs }: typeof LOG_RATE): () => number {
  let left = linesAtOnce;
  let countedAt = performance.now();
  return () => {
    const now = performance.now();
    left = Math.min(linesAtOnce, left + (now - countedAt) / intervalMs);
    countedAt = now;
    if (left < 1) return (1 - left) * intervalMs;
    left--;
    return 0;
  };
}

/**
 * Says of something that works or does not what has become of it, once for each change. Of what changes all the time, as a
 * store on a disk that is nearly full, a failure goes unsaid for a while; if it lasts, it is said then.
 */
export class ChangeLog {
  readonly #sayFailed: (cause: unknown) => void;
  readonly #sayRecovered: () => void;
  readonly #takeLine: () => number;
  /** Of the last failure, until it is over. */
  #failure: { cause: unknown } | undefined;
  /** Whether the last line said that it fails. */
  #saidFailing = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(sayFailed: (cause: unknown) => void, sayRecovered: () => void, rate = LOG_RATE) {
    this.#sayFailed = sayFailed;
    this.#sayRecovered = sayRecovered;
    this.#takeLine = linesOf(rate);
  }

  failed(cause: unknown): void {
    this.#failure = { cause };
    if (!this.#saidFailing && this.#timer === undefined) this.#sayInTime();
  }

  recovered(): void {
    this.#failure = undefined;
    if (!this.#saidFailing) return;
    this.#saidFailing = false;
    this.#sayRecovered();
  }

  #sayInTime(): void {
    this.#timer = undefined;
    if (this.#failure === undefined) return;
    const waitMs = this.#takeLine();
    if (waitMs > 0) {
      this.#timer = setTimeout(() => this.#sayInTime(), waitMs).unref();
      return;
    }
    this.#saidFailing = true;
    this.#sayFailed(this.#failure.cause);
  }
}

/**
 * Makes a log of what may happen over and over.
 *
 * @param say `unsaid` is how often it has happened since it was said last
 */
export function rateLimitedLog(
  say: (cause: unknown, unsaid: number) => void,
  rate = LOG_RATE,
): (cause: unknown) => void {
  const takeLine = linesOf(rate);
  let unsaid = 0;
  return cause => {
    if (takeLine() > 0) {
      unsaid++;
      return;
    }
    say(cause, unsaid);
    unsaid = 0;
  };
}
