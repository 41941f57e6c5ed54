import { LOG_REPEAT_INTERVAL_MS } from '../contract/limits.ts';

/**
 * Says of something that works or does not what has become of it, once for each change. What changes all the time, as a
 * store on a disk that is nearly full, fails again unsaid for a while; if it lasts, it is said then.
 */
export class ChangeLog {
  readonly #sayFailed: (cause: unknown) => void;
  readonly #sayRecovered: () => void;
  #isFailing = false;
  #cause: unknown;
  /** Whether the last word was that it fails. */
  #saidFailing = false;
  /** On the clock that is never set. */
  #saidAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  constructor(sayFailed: (cause: unknown) => void, sayRecovered: () => void) {
    this.#sayFailed = sayFailed;
    this.#sayRecovered = sayRecovered;
  }

  failed(cause: unknown): void {
    this.#isFailing = true;
    this.#cause = cause;
    if (this.#saidFailing || this.#timer !== undefined) return;
    const silentMs = this.#saidAt + LOG_REPEAT_INTERVAL_MS - performance.now();
    if (silentMs <= 0) this.#say();
    else this.#timer = setTimeout(() => this.#silenceEnded(), silentMs).unref();
  }

  recovered(): void {
    this.#isFailing = false;
    if (!this.#saidFailing) return;
    this.#saidFailing = false;
    this.#sayRecovered();
  }

  #silenceEnded(): void {
    this.#timer = undefined;
    if (this.#isFailing) this.#say();
  }

  #say(): void {
    this.#saidFailing = true;
    this.#saidAt = performance.now();
    this.#sayFailed(this.#cause);
  }
}

/**
 * Makes a log of what may happen over and over: it says it at once, and for a while only counts.
 *
 * @param say `unsaid` is how often it has happened since it was said last
 */
export function pacedLog(say: (cause: unknown, unsaid: number) => void): (cause: unknown) => void {
  let saidAt = Number.NEGATIVE_INFINITY;
  let unsaid = 0;
  return cause => {
    const now = performance.now();
    if (now - saidAt < LOG_REPEAT_INTERVAL_MS) {
      unsaid++;
      return;
    }
    say(cause, unsaid);
    saidAt = now;
    unsaid = 0;
  };
}
