import { setImmediate, setTimeout as wait } from 'node:timers/promises';
import {
  TOKEN_FINGERPRINT_INTERVAL_MS,
  TOKEN_REFRESH_INTERVAL_MIN_MS,
  TOKEN_REFRESH_INTERVAL_MS,
  TOKENS_AT_A_TIME_MAX,
} from '../contract/limits.ts';
import type { StoredToken } from '../contract/stored-token.ts';
import { hashToken, isWellFormed } from './token.ts';

const DAY_MS = 86_400_000;
/** What they cause takes about a millisecond. */
const LOOKS_SETTLED_AT_A_TIME = 16;

/** Where tokens are kept; a store has these. */
export interface TokenSource {
  tokensChangedSince(changeNumber: number): Promise<StoredToken[]>;
  /** Where a source has none, changes that were read may be gone at any time. */
  tokensFingerprint?(): Promise<string>;
  recordTokenUse(tokenIds: number[], day: string): Promise<void>;
}

/** Whose token it is, as its id. */
export type Holder = number | undefined | 'storeUnavailable';

interface KnownToken {
  id: number;
  /** Milliseconds since 1970 UTC; Infinity for a token that does not expire. */
  expiresAt: number;
  revoked: boolean;
  /** Days since 1970 UTC; -1 when it was never used. */
  lastUsedDay: number;
}

/**
 * Every token of the store, in memory, so that a request costs the store nothing. Changes made elsewhere (the
 * command line, another instance) are read once a second, by their numbers. Every few seconds the store is asked whether
 * changes may be gone that were read, as where a standby took over that lacks the last ones and gives their numbers to
 * others; then, and after each change that was read, all tokens are read anew. A well-formed token that is not known, as
 * one made an instant ago, makes the directory look at once, but never more often than five times a second, whoever
 * guesses.
 */
export class TokenDirectory {
  readonly #source: TokenSource;
  readonly #refreshFailed: (cause: unknown) => void;
  #tokens = new Map<string, KnownToken>();
  /** Tokens whose last use is not in the store yet. */
  readonly #used = new Set<KnownToken>();
  #changeNumber = 0;
  /** Of the store just before all was read; undefined when a change was read since, which it may not cover. */
  #fingerprint: string | undefined;
  /** On the clock that is never set, like the next. */
  #fingerprintAt = Number.NEGATIVE_INFINITY;
  #refreshedAt = 0;
  #refreshing: Promise<void> | undefined;
  #nextLook: Promise<void> | undefined;
  /** How many have waited for a look, and when the last of them goes on. */
  #turns = 0;
  #lastTurn: Promise<void> = Promise.resolve();
  #failing = false;
  #isWriting = false;
  #writingFailed = false;
  #timer: NodeJS.Timeout | undefined;

  private constructor(source: TokenSource, refreshFailed: (cause: unknown) => void) {
    this.#source = source;
    this.#refreshFailed = refreshFailed;
  }

  /**
   * Reads all tokens and begins to follow their changes.
   *
   * @param refreshFailed is told when the store no longer answers; the tokens known so far stay in force, which lets nobody
   *   store a plant, since that takes the same store
   */
  static async open(source: TokenSource, refreshFailed: (cause: unknown) => void): Promise<TokenDirectory> {
    const directory = new TokenDirectory(source, refreshFailed);
    await directory.#readChanges();
    directory.#timer = setInterval(() => void directory.#followChanges(), TOKEN_REFRESH_INTERVAL_MS);
    return directory;
  }

  /** Whether the store holds no token at all. */
  get isEmpty(): boolean {
    return this.#tokens.size === 0;
  }

  /** How many tokens the store holds, those included that are not in force any more. */
  get size(): number {
    return this.#tokens.size;
  }

  /** Whether the last look into the store succeeded; until one does, a revocation made elsewhere is not seen. */
  get isCurrent(): boolean {
    return !this.#failing;
  }

  /**
   * Finds out whose token this is.
   *
   * @returns the token's id; undefined when it is unknown, mistyped, expired or revoked; `storeUnavailable` when it is
   *   not known and the store cannot be asked. At once for a known token; an unknown one that is well formed waits for
   *   the next look into the store
   */
  holderOf(token: string): Holder | Promise<Holder> {
    return isWellFormed(token) ? this.holderOfHash(hashToken(token)) : undefined;
  }

  /** As {@link holderOf}, for a token that is well formed, by its hash. */
  holderOfHash(hash: string): Holder | Promise<Holder> {
    if (this.#tokens.has(hash)) return this.knownHolderOf(hash);
    return this.#lookAgain().then(async () => {
      await this.#turn();
      if (this.#tokens.has(hash)) return this.knownHolderOf(hash);
      return this.#failing ? 'storeUnavailable' : undefined;
    });
  }

  /** @returns the id of the token with this hash, if it is known and in force now */
  knownHolderOf(hash: string): number | undefined {
    const token = this.#tokens.get(hash);
    const now = Date.now();
    if (token === undefined || token.revoked || token.expiresAt <= now) return undefined;
    const day = Math.floor(now / DAY_MS);
    if (token.lastUsedDay !== day) {
      token.lastUsedDay = day;
      this.#used.add(token);
    }
    return token.id;
  }

  /** Reads what was changed before this call; settles also when the store does not answer. */
  async look(): Promise<void> {
    // One that is under way may have missed it.
    await this.#refreshing;
    await this.#refresh();
  }

  /** Stops following changes and notes the last uses. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    // One that is under way may have been begun before the last use.
    await this.#refreshing;
    await this.#followChanges();
  }

  /**
   * Settles after a look into the store that began after this call, since one already under way may have missed the
   * token; or with the first one that fails, so that nobody waits for two.
   */
  #lookAgain(): Promise<void> {
    this.#nextLook ??= this.#untilLookIsDue().then(() => {
      // It begins now, so whoever comes from here on needs the one after it.
      this.#nextLook = undefined;
      return this.#failing ? undefined : this.#refresh();
    });
    return this.#nextLook;
  }

  /** Settles a few at a time, so that the holders of known tokens do not wait behind thousands of guesses. */
  #turn(): Promise<void> {
    if (this.#turns++ % LOOKS_SETTLED_AT_A_TIME === 0)
      this.#lastTurn = this.#lastTurn.then(() => setImmediate());
    return this.#lastTurn;
  }

  async #untilLookIsDue(): Promise<void> {
    for (;;) {
      await this.#refreshing;
      if (this.#failing) return;
      const waitMs = this.#refreshedAt + TOKEN_REFRESH_INTERVAL_MIN_MS - performance.now();
      if (waitMs <= 0) return;
      await wait(waitMs);
    }
  }

  async #followChanges(): Promise<void> {
    await this.#refresh();
    // Apart, since a store that cannot write may still be read, and a request waits for no more than that.
    await this.#writeUses();
  }

  #refresh(): Promise<void> {
    this.#refreshing ??= this.#refreshNow();
    return this.#refreshing;
  }

  async #refreshNow(): Promise<void> {
    try {
      await this.#readChanges();
      this.#failing = false;
    } catch (cause) {
      if (!this.#failing) this.#refreshFailed(cause);
      this.#failing = true;
    } finally {
      this.#refreshedAt = performance.now();
      this.#refreshing = undefined;
    }
  }

  async #readChanges(): Promise<void> {
    const now = performance.now();
    if (now - this.#fingerprintAt >= TOKEN_FINGERPRINT_INTERVAL_MS) {
      // Before the tokens: where one changes meanwhile, the next fingerprint is another one.
      const fingerprint = await this.#source.tokensFingerprint?.();
      if (fingerprint === undefined || fingerprint !== this.#fingerprint) {
        const tokens = new Map<string, KnownToken>();
        this.#changeNumber = await this.#readInto(tokens, 0);
        this.#tokens = tokens;
        this.#fingerprint = fingerprint;
        this.#fingerprintAt = now;
        return;
      }
      this.#fingerprintAt = now;
    }
    const changeNumber = await this.#readInto(this.#tokens, this.#changeNumber);
    if (changeNumber !== this.#changeNumber) this.#fingerprint = undefined;
    this.#changeNumber = changeNumber;
  }

  /**
   * Reads the tokens that changed after a number, piece by piece, so that many of them hold nobody up.
   *
   * @returns the number of the last change
   */
  async #readInto(tokens: Map<string, KnownToken>, changeNumber: number): Promise<number> {
    let last = changeNumber;
    for (;;) {
      const changed = await this.#source.tokensChangedSince(last);
      for (const token of changed) {
        last = token.changeNumber;
        tokens.set(token.hash, {
          id: token.id,
          expiresAt: token.expiresAt ?? Number.POSITIVE_INFINITY,
          revoked: token.revokedAt !== null,
          lastUsedDay: token.lastUsedDay === null ? -1 : Date.parse(token.lastUsedDay) / DAY_MS,
        });
      }
      if (changed.length < TOKENS_AT_A_TIME_MAX) return last;
    }
  }

  async #writeUses(): Promise<void> {
    const used = [...this.#used];
    const day = used[0]?.lastUsedDay;
    if (day === undefined || this.#failing || this.#isWriting) return;
    // Around midnight some wait for the next look, with the other day.
    const usedThatDay = used.filter(token => token.lastUsedDay === day);
    const dayText = new Date(day * DAY_MS).toISOString().slice(0, 10);
    this.#isWriting = true;
    try {
      for (let start = 0; start < usedThatDay.length; start += TOKENS_AT_A_TIME_MAX) {
        const written = usedThatDay.slice(start, start + TOKENS_AT_A_TIME_MAX);
        const ids = written.map(token => token.id);
        await this.#source.recordTokenUse(ids, dayText);
        for (const token of written) if (token.lastUsedDay === day) this.#used.delete(token);
      }
      this.#writingFailed = false;
    } catch (cause) {
      if (!this.#writingFailed) this.#refreshFailed(cause);
      this.#writingFailed = true;
    } finally {
      this.#isWriting = false;
    }
  }
}
