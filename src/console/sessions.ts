import { setTimeout as wait } from 'node:timers/promises';
import { makeConsoleSecret } from '../auth/console-code.ts';
import { hashToken } from '../auth/token.ts';

/** A session ends after this time without a request. */
const SESSION_IDLE_MS = 8 * 3_600_000;
/** Shortest interval between two lookups of codes in the store. */
const CODE_LOOKUP_INTERVAL_MS = 200;

/** The sessions of signed-in operators, in memory only: they end with the process. */
export class Sessions {
  readonly #takeCodes: (hashes: string[]) => Promise<string[]>;
  /** By hash: the time of the last use, ms, monotonic clock. */
  readonly #usedAt = new Map<string, number>();
  /** Hashes of the codes that wait for the next lookup, and its result. */
  #codes: string[] = [];
  #lookup: Promise<Set<string>> | undefined;
  /** Settles when the next lookup may begin. */
  #pause: Promise<unknown> | undefined;

  /** @param takeCodes uses up one-time codes, and returns those that were valid */
  constructor(takeCodes: (hashes: string[]) => Promise<string[]>) {
    this.#takeCodes = takeCodes;
  }

  /** @returns both halves of a secret, with a blank between them; undefined for a wrong code */
  async signIn(code: string): Promise<string | undefined> {
    const codeHash = hashToken(code);
    this.#codes.push(codeHash);
    this.#lookup ??= this.#lookUpCodes();
    // Of several requests with the same code, the first one gets the session.
    if (!(await this.#lookup).delete(codeHash)) return undefined;
    const secret = `${makeConsoleSecret()} ${makeConsoleSecret()}`;
    this.#usedAt.set(hashToken(secret), performance.now());
    return secret;
  }

  /** Whether a session is active. The call counts as a use. */
  isActive(secret: string): boolean {
    const hash = hashToken(secret);
    const isActive = performance.now() - (this.#usedAt.get(hash) ?? -Infinity) <= SESSION_IDLE_MS;
    if (isActive) this.#usedAt.set(hash, performance.now());
    else this.#usedAt.delete(hash);
    return isActive;
  }

  signOut(secret: string): void {
    this.#usedAt.delete(hashToken(secret));
  }

  /** One lookup for all codes of an interval: a flood of wrong ones does not load the store. */
  async #lookUpCodes(): Promise<Set<string>> {
    await this.#pause;
    this.#lookup = undefined;
    const taken = this.#takeCodes(this.#codes.splice(0));
    // The timer does not keep the process running.
    this.#pause = Promise.allSettled([taken, wait(CODE_LOOKUP_INTERVAL_MS, undefined, { ref: false })]);
    return new Set(await taken);
  }
}
