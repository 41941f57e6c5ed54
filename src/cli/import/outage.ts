import { OUTAGE_MAX_MS, OUTAGE_SAID_AFTER_MS } from './limits.ts';

/**
 * Follows whether the service answers, and says it once when it stops and once when it is back. An outage begins
 * with the first request that failed since the last good answer, and is said after a second of it, so that a
 * connection cut here and there is not worth a line.
 */
export class Outage {
  readonly #say: (line: string) => void;
  #sinceMs: number | undefined;
  #said = false;
  #limitSaid = false;

  constructor(say: (line: string) => void) {
    this.#say = say;
  }

  /** An answer that settles a row has come. */
  answered(): void {
    if (this.#sinceMs === undefined) return;
    if (this.#said) {
      const seconds = (performance.now() - this.#sinceMs) / 1000;
      this.#say(`the service is back after ${seconds.toFixed(1)} s; going on`);
    }
    this.#sinceMs = undefined;
    this.#said = false;
  }

  /**
   * A request has failed and will be repeated.
   *
   * @param trouble the end of a sentence about the service, such as `answers 503`
   * @param sentMs when it was sent, by `performance.now()`
   * @returns whether the outage has lasted so long that it is time to give up
   */
  failed(trouble: string, sentMs: number): boolean {
    this.#sinceMs ??= sentMs;
    const lastsMs = performance.now() - this.#sinceMs;
    if (!this.#said && lastsMs >= OUTAGE_SAID_AFTER_MS) {
      this.#said = true;
      this.#say(
        `the service ${trouble}; waiting for up to ${OUTAGE_MAX_MS / 60_000} minutes and trying again…`,
      );
    }
    return lastsMs >= OUTAGE_MAX_MS;
  }

  /**
   * A request was refused since the service limits this token, which is no outage and is said once. It will be repeated.
   *
   * @returns as {@link failed}
   */
  limited(sentMs: number): boolean {
    if (!this.#limitSaid) {
      this.#limitSaid = true;
      this.#say('the service limits how many plants this token may send; going on at that rate');
    }
    this.#sinceMs ??= sentMs;
    return performance.now() - this.#sinceMs >= OUTAGE_MAX_MS;
  }
}
