import { setTimeout as wait } from 'node:timers/promises';
import { makeConsoleSecret } from '../auth/console-code.ts';
import { hashToken } from '../auth/token.ts';
import { SESSION_IDLE_MS, SESSIONS_MAX, WRONG_CODE_DELAY_MS, WRONG_CODE_DELAY_MS_MAX } from './limits.ts';

/** The sessions of signed-in operators, in memory only: they end with the process. */
export class Sessions {
  readonly #takeCode: (hash: string) => Promise<boolean>;
  /** By hash, least recently used first: the time of the last use, ms, monotonic clock. */
  readonly #usedAt = new Map<string, number>();
  #wrongCodes = 0;

  /** @param takeCode uses up a one-time code; only the first call with a valid code gets true */
  constructor(takeCode: (hash: string) => Promise<boolean>) {
    this.#takeCode = takeCode;
  }

  /**
   * Exchanges a one-time code for a session. Each wrong code waits longer than the one before.
   *
   * @returns the secret of the session, or undefined for a wrong code
   */
  async signIn(code: string): Promise<string | undefined> {
    if (!(await this.#takeCode(hashToken(code)))) {
      const delayMs = Math.min(WRONG_CODE_DELAY_MS * 2 ** this.#wrongCodes++, WRONG_CODE_DELAY_MS_MAX);
      // The process can end before.
      await wait(delayMs, undefined, { ref: false });
      return undefined;
    }
    this.#wrongCodes = 0;
    const secret = makeConsoleSecret();
    this.#usedAt.set(hashToken(secret), performance.now());
    const [oldest] = this.#usedAt.keys();
    if (this.#usedAt.size > SESSIONS_MAX) this.#usedAt.delete(oldest!);
    return secret;
  }

  /** Whether a session is active. The call counts as a use. */
  isActive(secret: string): boolean {
    const hash = hashToken(secret);
    const usedAt = this.#usedAt.get(hash);
    const isActive = usedAt !== undefined && performance.now() - usedAt <= SESSION_IDLE_MS;
    this.#usedAt.delete(hash);
    if (isActive) this.#usedAt.set(hash, performance.now());
    return isActive;
  }

  signOut(secret: string): void {
    this.#usedAt.delete(hashToken(secret));
  }
}
