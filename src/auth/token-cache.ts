import { setImmediate } from 'node:timers/promises';
import { TOKENS_AT_A_TIME_MAX } from '../contract/limits.ts';
import type { StoredToken } from '../contract/stored-token.ts';
import {
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
export type TokenLookup = number | undefined | 'storeUnavailable';

interface CachedToken {
  id: number;
  /** Milliseconds since 1970 UTC; Infinity for a token that does not expire, 0 for one that was revoked. */
  inForceUntil: number;
  /** Days since 1970 UTC; -1 when it was never used. */
  lastUsedDay: number;
}

/**
 * A cache of every token of the store.
 *
 * | promise | how it is fulfilled |
 * |---|---|
 * | a known token costs the store nothing | it is in the cache |
 * | a revoked token is rejected within 5 s, on every instance | the cache is refreshed once a second |
 * | a new token is accepted at its first request | an unknown token waits for the next refresh, which then comes sooner |
 * | guesses neither load the store nor fill the memory | at most five refreshes a second; no unknown token is remembered |
 * | guesses do not delay known tokens | after a refresh, a few lookups at a time are resolved |
 * | cached tokens stay in force while the store cannot be read | unknown ones are `storeUnavailable`, without a lookup |
 *
 * A refresh asks for the fingerprint of all tokens, and reads all of them where it has changed. Change numbers alone would
 * not do: after a failover or a restored backup, a number can be given a second time.
 */
export class TokenCache {
  readonly #source: TokenSource;
  readonly #failed: (cause: unknown) => void;
  #tokens = new Map<string, CachedToken>();
  /** Of the store, just before the cached tokens were read. */
  #fingerprint: string | undefined;
  /** When the last refresh began, on the monotonic clock. */
  #refreshedAt = 0;
  #refreshing: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** Whether unknown tokens can be looked up: the last refresh succeeded, and the directory is not closed. */
  #isAvailable = true;
  /** Resolves the lookups of unknown tokens. Each needs a refresh that begins after its request came. */
  #lookups: (() => void)[] = [];
  /** Ids of tokens by the day of their use, `YYYY-MM-DD`, until the store has it. */
  readonly #uses = new Map<string, Set<number>>();
  #recording: Promise<void> | undefined;
  #isRecordingFailing = false;

  private constructor(source: TokenSource, failed: (cause: unknown) => void) {
    this.#source = source;
    this.#failed = failed;
  }

  /**
   * Reads all tokens and begins to refresh them.
   *
   * @param failed is called when the store can no longer be read or written. The cached tokens stay in force. That lets
   *   nobody store a plant, since a plant needs the same store.
   */
  static async open(source: TokenSource, failed: (cause: unknown) => void): Promise<TokenCache> {
    const directory = new TokenCache(source, failed);
    await directory.#read();
    directory.#timer = setInterval(() => directory.#refreshIfDue(), TOKEN_REFRESH_INTERVAL_MIN_MS);
    return directory;
  }

  /** How many tokens the store has, expired and revoked ones included. */
  get size(): number {
    return this.#tokens.size;
  }

  /** Whether the last refresh succeeded; until one does, a revocation made elsewhere is not seen. */
  get isCurrent(): boolean {
    return this.#isAvailable;
  }

  /**
   * Finds the id of the token with this hash; where it is unknown, after the next refresh.
   *
   * @returns undefined when the token is unknown, expired or revoked; `storeUnavailable` when it is unknown and the store
   *   cannot be read
   */
  async lookUp(hash: string): Promise<TokenLookup> {
    if (!this.#tokens.has(hash) && this.#isAvailable)
      await new Promise<void>(resolve => this.#lookups.push(resolve));
    return this.#tokens.has(hash) || this.#isAvailable ? this.lookUpCached(hash) : 'storeUnavailable';
  }

  /** @returns the id of the token with this hash, if it is cached and in force now */
  lookUpCached(hash: string): number | undefined {
    const token = this.#tokens.get(hash);
    const now = Date.now();
    if (token === undefined || token.inForceUntil <= now) return undefined;
    const day = Math.floor(now / DAY_MS);
    if (token.lastUsedDay !== day) {
      token.lastUsedDay = day;
      const dayText = new Date(now).toISOString().slice(0, 10);
      this.#uses.set(dayText, (this.#uses.get(dayText) ?? new Set()).add(token.id));
    }
    return token.id;
  }

  /** Caches a token that this service has made itself: on SQLite such a commit does not change the fingerprint. */
  add(token: StoredToken): void {
    this.#tokens.set(token.hash, cachedToken(token));
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#refreshing;
    this.#isAvailable = false;
    for (const resolve of this.#lookups) resolve();
    await this.#recordUses();
  }

  #refreshIfDue(): void {
    const isDue = performance.now() - this.#refreshedAt >= TOKEN_REFRESH_INTERVAL_MS;
    if (!isDue && this.#lookups.length === 0) return;
    this.#refreshing ??= this.#refresh().finally(() => {
      this.#refreshing = undefined;
    });
  }

  async #refresh(): Promise<void> {
    let lookups = this.#lookups;
    // Those that come from here on need the next refresh, unless this one fails.
    this.#lookups = [];
    try {
      await this.#read();
      this.#isAvailable = true;
      // Not awaited: a store that cannot be written may still be read.
      void this.#recordUses();
    } catch (cause) {
      if (this.#isAvailable) this.#failed(cause);
      this.#isAvailable = false;
      lookups = lookups.concat(this.#lookups.splice(0));
    }
    // Not awaited: these may be thousands, and the next refresh does not wait for them.
    void resolveInGroups(lookups);
  }

  async #read(): Promise<void> {
    this.#refreshedAt = performance.now();
    // Before the tokens: where one changes meanwhile, the next fingerprint is another one.
    const fingerprint = await this.#source.tokensFingerprint();
    if (fingerprint === this.#fingerprint) return;
    const tokens = new Map<string, CachedToken>();
    let page: StoredToken[] = [];
    do {
      page = await this.#source.tokensChangedSince(page.at(-1)?.changeNumber ?? 0);
      for (const token of page) tokens.set(token.hash, cachedToken(token));
    } while (page.length === TOKENS_AT_A_TIME_MAX);
    this.#tokens = tokens;
    this.#fingerprint = fingerprint;
  }

  /** One recording at a time; never throws. What fails is tried again after the next refresh. */
  #recordUses(): Promise<void> {
    this.#recording ??= this.#recordAllUses().finally(() => {
      this.#recording = undefined;
    });
    return this.#recording;
  }

  async #recordAllUses(): Promise<void> {
    try {
      for (const [day, ids] of this.#uses) {
        while (ids.size > 0) {
          const recorded = [...ids.values().take(TOKENS_AT_A_TIME_MAX)];
          await this.#source.recordTokenUse(recorded, day);
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

/** Takes many event-loop iterations, so that known tokens do not wait behind thousands of guesses. */
async function resolveInGroups(lookups: (() => void)[]): Promise<void> {
  while (lookups.length > 0) {
    for (const resolve of lookups.splice(0, UNKNOWN_TOKENS_AT_A_TIME_MAX)) resolve();
    await setImmediate();
  }
}

function cachedToken({ id, expiresAt, revokedAt, lastUsedDay }: StoredToken): CachedToken {
  return {
    id,
    inForceUntil: revokedAt === null ? (expiresAt ?? Number.POSITIVE_INFINITY) : 0,
    lastUsedDay: lastUsedDay === null ? -1 : Date.parse(lastUsedDay) / DAY_MS,
  };
}
