/** How often the same thing may be said: so many times in a row, and then once in every interval. */
export interface LogPace {
  linesAtOnce: number;
  intervalMs: number;
}

/** A token bucket for lines. */
class Pacer {
  readonly #pace: LogPace;
  /** How many lines may be said now, in fractions. */
  #saved: number;
  #countedAt = performance.now();

  constructor(pace: LogPace) {
    this.#pace = pace;
    this.#saved = pace.linesAtOnce;
  }

  /** @returns 0 when a line may be said now, which it then counts as; otherwise after how many ms to ask again */
  take(): number {
    const { linesAtOnce, intervalMs } = this.#pace;
    const now = performance.now();
    this.#saved = Math.min(linesAtOnce, this.#saved + (now - this.#countedAt) / intervalMs);
    this.#countedAt = now;
    if (this.#saved < 1) return (1 - this.#saved) * intervalMs;
    this.#saved--;
    return 0;
  }
}

/**
 * Says of something that works or does not what has become of it, once for each change. Of what changes all the time, as a
 * store on a disk that is nearly full, a failure goes unsaid for a while; if it lasts, it is said then.
 */
export class ChangeLog {
  readonly #sayFailed: (cause: unknown) => void;
  readonly #sayRecovered: () => void;
  readonly #pacer: Pacer;
  #isFailing = false;
  #cause: unknown;
  /** Whether the last word was that it fails. */
  #saidFailing = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(sayFailed: (cause: unknown) => void, sayRecovered: () => void, pace: LogPace) {
    this.#sayFailed = sayFailed;
    this.#sayRecovered = sayRecovered;
    this.#pacer = new Pacer(pace);
  }

  failed(cause: unknown): void {
    this.#isFailing = true;
    this.#cause = cause;
    if (!this.#saidFailing && this.#timer === undefined) this.#sayInTime();
  }

  recovered(): void {
    this.#isFailing = false;
    if (!this.#saidFailing) return;
    this.#saidFailing = false;
    this.#sayRecovered();
  }

  #sayInTime(): void {
    const waitMs = this.#pacer.take();
    if (waitMs === 0) {
      this.#saidFailing = true;
      this.#sayFailed(this.#cause);
    } else {
      this.#timer = setTimeout(() => this.#silenceEnded(), waitMs).unref();
    }
  }

  #silenceEnded(): void {
    this.#timer = undefined;
    if (this.#isFailing) this.#sayInTime();
  }
}

/**
 * Makes a log of what may happen over and over.
 *
 * @param say `unsaid` is how often it has happened since it was said last
 */
export function pacedLog(
  say: (cause: unknown, unsaid: number) => void,
  pace: LogPace,
): (cause: unknown) => void {
  const pacer = new Pacer(pace);
  let unsaid = 0;
  return cause => {
    if (pacer.take() > 0) {
      unsaid++;
      return;
    }
    say(cause, unsaid);
    unsaid = 0;
  };
}
