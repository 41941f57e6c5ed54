import { setImmediate } from 'node:timers/promises';
import { TOKENS_AT_A_TIME_MAX } from '../contract/limits.ts';
import type { StoredToken } from '../contract/stored-token.ts';
import {
  TOKEN_FINGERPRINT_INTERVAL_MS,
  TOKEN_REFRESH_INTERVAL_MIN_MS,
  TOKEN_REFRESH_INTERVAL_MS,
  UNKNOWN_TOKENS_AT_A_TIME_MAX,
} from './limits.ts';

const DAY_MS = 86_400_000;

/** Where tokens are stored; `store/plant-store.ts` says what each method does. */
export interface TokenSource {
  tokensChangedSince(changeNumber: number): Promise<StoredToken[]>;
  tokensFingerprint(): Promise<string>;
  recordTokenUse(tokenIds: number[], day: string): Promise<void>;
}

/** Whose token it is, as its id. */
export type Holder = number | undefined | 'storeUnavailable';

interface KnownToken {
  id: number;
  /** Milliseconds since 1970 UTC; Infinity for a token that does not expire, 0 for one that was revoked. */
  inForceUntil: number;
  /** Days since 1970 UTC; -1 when it was never used. */
  lastUsedDay: number;
}

/**
 * Every token of the store, in memory, so that a known token costs the store nothing. One read follows the changes that the
 * command line and other instances make: once a second by their numbers. A request with an unknown token waits for the next
 * read, which then comes sooner, but never more than five times a second, however many guess.
 *
 * Change numbers alone miss a change that is gone: a standby that lacks the last ones took over, or a backup was put back,
 * and their numbers are given again. So every few seconds the fingerprint of all tokens is compared, and all are read anew
 * where it is another one.
 */
export class TokenDirectory {
  readonly #source: TokenSource;
  readonly #failed: (cause: unknown) => void;
  #tokens = new Map<string, KnownToken>();
  #changeNumber = 0;
  /** Of the store just before all tokens were read; undefined once a change was read that it may not cover. */
  #fingerprint: string | undefined;
  /** On the monotonic clock, like the next. */
  #comparedAt = Number.NEGATIVE_INFINITY;
  #refreshedAt = 0;
  #refreshing: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isFailing = false;
  #isClosed = false;
  /** Requests with unknown tokens, which wait for a read that begins after they came. */
  #waiting: (() => void)[] = [];
  /** Ids of tokens by the day of their use, where the store does not have it yet. */
  readonly #uses = new Map<number, Set<number>>();
  #recording: Promise<void> | undefined;
  #isRecordingFailing = false;

  private constructor(source: TokenSource, failed: (cause: unknown) => void) {
    this.#source = source;
    this.#failed = failed;
  }

  /**
   * Reads all tokens and begins to follow their changes.
   *
   * @param failed is told when the store no longer answers; the tokens known so far stay in force, which lets nobody store
   *   a plant, since that takes the same store
   */
  static async open(source: TokenSource, failed: (cause: unknown) => void): Promise<TokenDirectory> {
    const directory = new TokenDirectory(source, failed);
    await directory.#read();
    directory.#refreshedAt = performance.now();
    directory.#scheduleRefresh();
    return directory;
  }

  /** How many tokens the store holds, those included that are not in force any more. */
  get size(): number {
    return this.#tokens.size;
  }

  /** Whether the last read succeeded; until one does, a revocation made elsewhere is not seen. */
  get isCurrent(): boolean {
    return !this.#isFailing;
  }

  /**
   * Finds out whose token has this hash; where it is unknown, with the next read of the store.
   *
   * @returns the token's id; undefined when it is unknown, expired or revoked; `storeUnavailable` when it is unknown and
   *   the store cannot be asked
   */
  async holderOf(hash: string): Promise<Holder> {
    if (!this.#tokens.has(hash) && this.#canAsk) {
      await new Promise<void>(resolve => {
        if (this.#waiting.push(resolve) === 1) this.#scheduleRefresh();
      });
    }
    return this.#tokens.has(hash) || this.#canAsk ? this.knownHolderOf(hash) : 'storeUnavailable';
  }

  /** @returns the id of the token with this hash, if it is known and in force now */
  knownHolderOf(hash: string): number | undefined {
    const token = this.#tokens.get(hash);
    const now = Date.now();
    if (token === undefined || token.inForceUntil <= now) return undefined;
    const day = Math.floor(now / DAY_MS);
    if (token.lastUsedDay !== day) {
      token.lastUsedDay = day;
      this.#uses.set(day, (this.#uses.get(day) ?? new Set()).add(token.id));
    }
    return token.id;
  }

  /** Takes a token that was just made here, so that its first request need not wait for the next read. */
  add(token: StoredToken): void {
    this.#tokens.set(token.hash, knownToken(token));
  }

  /** Stops following changes and records the last uses. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#refreshing;
    for (const goOn of this.#waiting) goOn();
    // A recording in progress may have begun before the last use.
    await this.#recording;
    await this.#recordUses();
  }

  get #canAsk(): boolean {
    return !this.#isFailing && !this.#isClosed;
  }

  #scheduleRefresh(): void {
    if (this.#refreshing !== undefined || this.#isClosed) return;
    const intervalMs = this.#waiting.length > 0 ? TOKEN_REFRESH_INTERVAL_MIN_MS : TOKEN_REFRESH_INTERVAL_MS;
    const waitMs = this.#refreshedAt + intervalMs - performance.now();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(
      () => {
        this.#refreshing = this.#refresh();
      },
      Math.max(0, waitMs),
    );
  }

  async #refresh(): Promise<void> {
    // The read begins now: whoever comes from here on needs the next one, unless this one fails.
    const waiting = this.#waiting;
    this.#waiting = [];
    try {
      await this.#read();
      this.#isFailing = false;
    } catch (cause) {
      if (!this.#isFailing) this.#failed(cause);
      this.#isFailing = true;
      waiting.push(...this.#waiting.splice(0));
    }
    this.#refreshedAt = performance.now();
    this.#refreshing = undefined;
    this.#scheduleRefresh();
    // Not awaited: a store that cannot be written may still be read.
    if (!this.#isFailing)
      this.#recording ??= this.#recordUses().finally(() => {
        this.#recording = undefined;
      });
    // A few at a time, so that known tokens do not wait behind thousands of guesses.
    while (waiting.length > 0) {
      for (const goOn of waiting.splice(0, UNKNOWN_TOKENS_AT_A_TIME_MAX)) goOn();
      await setImmediate();
    }
  }

  async #read(): Promise<void> {
    const now = performance.now();
    const isCompared = now - this.#comparedAt >= TOKEN_FINGERPRINT_INTERVAL_MS;
    // Before the tokens: where one changes meanwhile, the next fingerprint is another one.
    const fingerprint = isCompared ? await this.#source.tokensFingerprint() : undefined;
    const isAnew = isCompared && fingerprint !== this.#fingerprint;
    const tokens = isAnew ? new Map<string, KnownToken>() : this.#tokens;
    let changeNumber = isAnew ? 0 : this.#changeNumber;
    for (;;) {
      const changed = await this.#source.tokensChangedSince(changeNumber);
      if (!isAnew && changed.length > 0) this.#fingerprint = undefined;
      for (const token of changed) tokens.set(token.hash, knownToken(token));
      changeNumber = changed.at(-1)?.changeNumber ?? changeNumber;
      if (changed.length < TOKENS_AT_A_TIME_MAX) break;
    }
    this.#tokens = tokens;
    this.#changeNumber = changeNumber;
    if (isAnew) this.#fingerprint = fingerprint;
    if (isCompared) this.#comparedAt = now;
  }

  async #recordUses(): Promise<void> {
    try {
      for (const [day, ids] of this.#uses) {
        const dayText = new Date(day * DAY_MS).toISOString().slice(0, 10);
        while (ids.size > 0) {
          const recorded = [...ids.values().take(TOKENS_AT_A_TIME_MAX)];
          await this.#source.recordTokenUse(recorded, dayText);
          for (const id of recorded) ids.delete(id);
        }
        this.#uses.delete(day);
      }
      this.#isRecordingFailing = false;
    } catch (cause) {
      if (!this.#isRecordingFailing) this.#failed(cause);
      this.#isRecordingFailing = true;
    }
  }
}

function knownToken({ id, expiresAt, revokedAt, lastUsedDay }: StoredToken): KnownToken {
  return {
    id,
    inForceUntil: revokedAt === null ? (expiresAt ?? Number.POSITIVE_INFINITY) : 0,
    lastUsedDay: lastUsedDay === null ? -1 : Date.parse(lastUsedDay) / DAY_MS,
  };
}
