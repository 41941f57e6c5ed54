import { type Clock, DAY_MS, isRecent, type Moment, momentOf, repeat, SYSTEM_CLOCK } from '../clock.ts';
import { PendingLookups } from './pending-lookups.ts';
import { type StoredToken, type TokenGroup, tokenGroupOf } from './stored-token.ts';
import { type TokenUseStore, TokenUses } from './token-uses.ts';

export const TOKEN_REFRESH_INTERVAL_MS = 1_000;
/** Shortest interval between two refreshes, which the lookup of an unknown token may cause. */
export const TOKEN_REFRESH_INTERVAL_MIN_MS = 200;
/** A token is accepted only if a refresh that began at most this long ago has found it valid. */
export const TOKEN_AGE_MAX_MS = 4_000;
/** A lookup waits at most this long for a refresh. */
export const TOKEN_LOOKUP_TIMEOUT_MS = 1_000;

/** Where tokens are stored. A revocation takes effect in time only if these promises are true. */
export interface TokenSource extends TokenUseStore {
  /**
   * Returns a text for each group that has tokens. The text changes whenever another connection
   * creates or revokes a token of the group. This also holds when a failover or a restored backup
   * reuses a change number. Other commits may change the text, too.
   */
  tokenFingerprints(): Promise<ReadonlyMap<number, string>>;
  /** Returns all tokens of a group, from one snapshot that is taken after the call. */
  tokensOfGroup(group: number): Promise<TokenGroup>;
}

export type TokenLookup =
  | { kind: 'valid'; id: number }
  /** The token is unknown, expired or revoked. */
  | { kind: 'rejected' }
  /** The store was not read lately, so it is not known whether the token is valid. */
  | { kind: 'storeUnavailable' };

interface CachedToken {
  id: number;
  label: string;
  changeNumber: number;
  isRevoked: boolean;
  /** Milliseconds since 1970 UTC; null if it does not expire. */
  expiresAt: number | null;
  /** Days since 1970 UTC; undefined if it was never used. */
  lastUsedDay: number | undefined;
}

/**
 * A cache of all tokens of the store.
 *
 * | requirement | solution |
 * |---|---|
 * | a lookup of a known token costs the store nothing | it is in the cache |
 * | a revoked token is rejected within 5 s, on every instance | one refresh per second, and a lookup needs one that began less than 4 s ago; the request has the last second |
 * | a new token is valid at its first use | its lookup waits for a refresh, which comes sooner |
 * | guesses do not load the store | at most five refreshes per second |
 * | guesses do not fill the memory | unknown tokens are not cached |
 * | guesses do not delay known tokens | a refresh resolves a few pending lookups per tick |
 * | no lookup waits for long without the store | after a failed refresh or 1 s: `storeUnavailable` |
 *
 * A refresh has four steps:
 *
 * 1. It reads one fingerprint for each group of tokens. Change numbers are not enough: after a
 *    failover or a restored backup, the store can assign a number a second time.
 * 2. It reads the tokens of each group whose fingerprint has changed. Usually no fingerprint has
 *    changed, and the refresh ends here.
 * 3. It replaces the content of the cache by these tokens and the tokens of the unchanged groups.
 * 4. It adds the own changes since step 1 again, because step 2 may have read older tokens.
 *
 * An own change is a token that this service created or revoked. {@link TokenCache.add} adds it to
 * the cache at once. Of two states of a token, the newer one has the larger change number. The
 * cache forgets the fingerprint of the group, so the next refresh reads the group again.
 */
export class TokenCache {
  readonly #source: TokenSource;
  readonly #onError: (cause: unknown) => void;
  readonly #clock: Clock;
  readonly #uses: TokenUses;
  /** By hash. */
  #tokens = new Map<string, CachedToken>();
  #byId = new Map<number, CachedToken>();
  /** Of each group that has not changed since it was read. A refresh reads all other groups. */
  #fingerprints = new Map<number, string>();
  /** Tokens that this service has created or revoked since the last refresh began. */
  #ownChanges: StoredToken[] = [];
  /** When the last refresh began; ms, on the monotonic clock. */
  #lastRefreshAt = 0;
  /** When the last successful refresh began. */
  #lastSuccessAt: Moment = { monotonicMs: Number.NEGATIVE_INFINITY, wallMs: 0 };
  #refreshing: Promise<void> | undefined;
  #timer: Disposable | undefined;
  #failure: unknown;
  #isClosed = false;
  /** Each needs a refresh that begins after it. */
  readonly #pendingLookups: PendingLookups;

  private constructor(source: TokenSource, onError: (cause: unknown) => void, clock: Clock) {
    this.#source = source;
    this.#onError = onError;
    this.#clock = clock;
    this.#uses = new TokenUses(source, onError);
    this.#pendingLookups = new PendingLookups(clock);
  }

  /** @param onError is called when the store can no longer be read or written */
  static async open(
    source: TokenSource,
    onError: (cause: unknown) => void,
    clock: Clock = SYSTEM_CLOCK,
  ): Promise<TokenCache> {
    const cache = new TokenCache(source, onError, clock);
    await cache.#readTokens();
    cache.#timer = repeat(clock, () => cache.#refreshIfDue(), TOKEN_REFRESH_INTERVAL_MIN_MS);
    return cache;
  }

  /** Includes expired and revoked tokens. */
  get size(): number {
    return this.#tokens.size;
  }

  /** How many tokens are neither expired nor revoked. It counts them at each call. */
  get validCount(): number {
    const now = this.#clock.wallNow();
    let count = 0;
    for (const token of this.#tokens.values()) if (isValid(token, now)) count++;
    return count;
  }

  /** A token that is cached, valid or not. */
  get(hash: string): { id: number; label: string } | undefined {
    return this.#tokens.get(hash);
  }

  /** The label of a token that is cached, valid or not. */
  labelOf(tokenId: number): string | undefined {
    return this.#byId.get(tokenId)?.label;
  }

  /** Whether a token is cached and revoked. */
  isRevoked(tokenId: number): boolean {
    return this.#byId.get(tokenId)?.isRevoked ?? false;
  }

  /** Why the last refresh failed; undefined if it did not. */
  get failure(): unknown {
    return this.#failure;
  }

  /** Whether the last successful refresh is recent. If not, no token is accepted. */
  get isCurrent(): boolean {
    return isRecent(this.#clock, this.#lastSuccessAt, TOKEN_AGE_MAX_MS);
  }

  /**
   * Looks up a token by its hash. If the token is unknown or the cache is not current, waits for
   * the next refresh that begins. If that fails, a known token is still valid while the cache is
   * current, and nothing is known of any other.
   */
  async lookUp(hash: string): Promise<TokenLookup> {
    const since = this.#clock.now();
    const needsRefresh = !(this.#tokens.has(hash) && this.isCurrent);
    if (needsRefresh && !this.#isClosed) await this.#pendingLookups.wait(since);
    const isKnown = this.#tokens.has(hash) || this.#lastSuccessAt.monotonicMs >= since;
    if (!isKnown || !this.isCurrent) return { kind: 'storeUnavailable' };
    const id = this.lookUpCached(hash);
    return id === undefined ? { kind: 'rejected' } : { kind: 'valid', id };
  }

  /**
   * Looks up a token by its hash in the cache alone. It notes the first use of the day for the
   * store.
   *
   * @returns the id of a valid token; undefined if the cache has none, and `lookUp` finds out why.
   *   It is not a {@link TokenLookup}, because this runs for each create, and an object would take
   *   time.
   */
  lookUpCached(hash: string): number | undefined {
    const token = this.#tokens.get(hash);
    const now = this.#clock.wallNow();
    if (token === undefined || !isValid(token, now) || !this.isCurrent) return undefined;
    const day = Math.floor(now / DAY_MS);
    if (token.lastUsedDay !== day) {
      token.lastUsedDay = day;
      this.#uses.add(token.id, day);
    }
    return token.id;
  }

  /** Adds a token that this service has created or revoked. The change takes effect at once. */
  add(token: StoredToken): void {
    this.#ownChanges.push(token);
    this.#putIfNewer(token);
  }

  async close(): Promise<void> {
    this.#timer?.[Symbol.dispose]();
    await this.#refreshing;
    this.#isClosed = true;
    this.#lastSuccessAt.monotonicMs = Number.NEGATIVE_INFINITY;
    this.#pendingLookups.end();
    await this.#uses.record();
  }

  #refreshIfDue(): void {
    const now = this.#clock.now();
    // Lookups that would time out before the next call are resolved now.
    this.#pendingLookups.resolve(now + TOKEN_REFRESH_INTERVAL_MIN_MS - TOKEN_LOOKUP_TIMEOUT_MS);
    const isDue = now - this.#lastRefreshAt >= TOKEN_REFRESH_INTERVAL_MS;
    if (!isDue && this.#pendingLookups.isEmpty) return;
    this.#refreshing ??= this.#refresh().finally(() => (this.#refreshing = undefined));
  }

  async #refresh(): Promise<void> {
    try {
      await this.#readTokens();
      this.#failure = undefined;
      this.#pendingLookups.resolve(this.#lastRefreshAt);
      // This is not awaited, because a store may be readable though it is not writable.
      void this.#uses.record();
    } catch (cause) {
      if (this.#failure === undefined) this.#onError(cause);
      this.#failure = cause;
      this.#pendingLookups.resolve(Number.POSITIVE_INFINITY);
    }
  }

  /** Does one refresh. The numbers below are the steps in the comment of the class. */
  async #readTokens(): Promise<void> {
    const beganAt = momentOf(this.#clock);
    this.#lastRefreshAt = beganAt.monotonicMs;
    this.#ownChanges = [];
    // 1. Fingerprints are read before tokens: if a token changes in between, the next one differs.
    const fingerprints = await this.#source.tokenFingerprints();
    const isUnchanged = (group: number): boolean =>
      fingerprints.has(group) && fingerprints.get(group) === this.#fingerprints.get(group);
    const changedGroups = [...fingerprints.keys()].filter(group => !isUnchanged(group));
    // A group whose tokens were all deleted has no fingerprint.
    const isDeleted = ({ id }: CachedToken): boolean => !fingerprints.has(tokenGroupOf(id));
    if (changedGroups.length > 0 || this.#tokens.values().some(isDeleted)) {
      // This precedes step 2, because an own change during step 2 makes its group a changed one.
      const tokens = new Map(this.#tokens.entries().filter(([, { id }]) => isUnchanged(tokenGroupOf(id))));
      const readFingerprints = new Map(fingerprints);
      // 2.
      for (const group of changedGroups) {
        const read = await this.#source.tokensOfGroup(group);
        // The group may have changed since step 1, and a failover may undo that change again.
        if (read.fingerprint !== undefined) readFingerprints.set(group, read.fingerprint);
        for (const token of read.tokens) tokens.set(token.hash, cachedToken(token));
      }
      // 3. Nothing is awaited until the end of step 4, so no lookup can miss an own change.
      this.#tokens = tokens;
      this.#byId = new Map(tokens.values().map(token => [token.id, token]));
      this.#fingerprints = readFingerprints;
      // 4.
      for (const token of this.#ownChanges) this.#putIfNewer(token);
    }
    // A refresh that took long says nothing about the time after its beginning.
    this.#lastSuccessAt = beganAt;
  }

  #putIfNewer(token: StoredToken): void {
    this.#fingerprints.delete(tokenGroupOf(token.id));
    const cached = this.#tokens.get(token.hash);
    if (cached !== undefined && cached.changeNumber >= token.changeNumber) return;
    const added = cachedToken(token);
    this.#tokens.set(token.hash, added);
    this.#byId.set(token.id, added);
  }
}

function isValid({ isRevoked, expiresAt }: CachedToken, now: number): boolean {
  return !isRevoked && (expiresAt === null || expiresAt > now);
}

function cachedToken(token: StoredToken): CachedToken {
  const { id, label, changeNumber, expiresAt, revokedAt, lastUsedDay } = token;
  return {
    id,
    label,
    changeNumber,
    isRevoked: revokedAt !== null,
    expiresAt,
    lastUsedDay: lastUsedDay === null ? undefined : Date.parse(lastUsedDay) / DAY_MS,
  };
}
