import assert from 'node:assert/strict';
import type { Clock } from '../../src/core/clock.ts';
import type { OpenidSettings } from '../../src/extras/openid/openid-settings.ts';
import {
  KEY_SOURCE,
  type KeySource,
  KeysUnavailable,
  openProviderKeys,
  type ProviderKeys,
} from '../../src/extras/openid/provider-keys.ts';
import { count, type Happened, type Part } from './part.ts';
import { Scheduler } from './scheduler.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** The limits of the production code, as its documents state them. */
const KEYS_AGE_MAX_MS = 24 * HOUR_MS;
const READ_ON_DEMAND_INTERVAL_MS = 30_000;
const UNKNOWN_KEY_MAX_MS = 5 * MINUTE_MS;
/** Longest time of a read, which then fails. */
const HANG_MAX_MS = 5_000;
/** A token waits for the read in flight, for one because the keys are old, and for one because its key is new. */
const TOKEN_MAX_MS = 3 * (HANG_MAX_MS + 1);
const HEALTHY_READ_MAX_MS = 200;
/** Times at which tokens arrive. */
const BURSTS = 30;
/** The code of `JWKSNoMatchingKey`. */
const NO_MATCHING_KEY = 'ERR_JWKS_NO_MATCHING_KEY';
/** Keys that the provider never has. */
const GUESSES = ['guess 1', 'guess 2'];

/** What was seen of the tokens with a key. Times are ms on the monotonic clock. */
interface KeyHistory {
  /** When the provider last published it; undefined while it does not publish it. */
  publishedAtMs: number | undefined;
  /** When tokens began to arrive although it was unknown, and the last of them. */
  arrivals: Period;
  /** When the first of these tokens arrived, and the last one got its result. */
  failures: Period;
}

/** A long pause ends a period. */
interface Period {
  beganAtMs: number;
  lastAtMs: number;
}

const never = (): Period => ({ beganAtMs: Number.POSITIVE_INFINITY, lastAtMs: Number.NEGATIVE_INFINITY });

function extend(period: Period, beganAtMs: number, lastAtMs: number): void {
  period.beganAtMs = Math.min(beganAtOf(period, beganAtMs), beganAtMs);
  period.lastAtMs = lastAtMs;
}

/** @returns when the period began that has not ended by now */
function beganAtOf({ beganAtMs, lastAtMs }: Period, nowMs: number): number {
  return nowMs - lastAtMs < UNKNOWN_KEY_MAX_MS ? beganAtMs : Number.POSITIVE_INFINITY;
}

/** An OpenID provider, and the set of keys that a read returns. */
class ModelProvider {
  readonly #scheduler: Scheduler;
  readonly #happened: Happened;
  /** The newest key is the last one. */
  published: string[] = [];
  /** Reads that begin before this time may fail or hang. */
  troubleUntilMs = 0;
  failingPercent = 0;
  /** The last read that succeeded: its keys, and when it ended by both clocks. */
  lastRead: { keys: string[]; endedAtMs: number; endedAtWallMs: number } | undefined;
  /** When the last read began. */
  lastBeganAtMs = Number.NEGATIVE_INFINITY;
  #lastDemandedAtMs = Number.NEGATIVE_INFINITY;
  reads = 0;
  readsInFlight = 0;
  /** Whether a read that begins now is one of each hour. */
  isScheduled = false;

  constructor(scheduler: Scheduler, happened: Happened) {
    this.#scheduler = scheduler;
    this.#happened = happened;
  }

  get hasTrouble(): boolean {
    return this.#scheduler.now() < this.troubleUntilMs;
  }

  async read(): ReturnType<KeySource['read']> {
    const now = this.#scheduler.now();
    assert.equal(this.readsInFlight, 0, 'two reads at the same time');
    if (!this.isScheduled) {
      count(this.#happened, 'a token causes a read');
      const sinceMs = now - this.#lastDemandedAtMs;
      assert.ok(sinceMs >= READ_ON_DEMAND_INTERVAL_MS, `tokens cause a read again after ${sinceMs} ms`);
      this.#lastDemandedAtMs = now;
    }
    this.lastBeganAtMs = now;
    this.reads++;
    this.readsInFlight++;
    try {
      return await this.#readNow();
    } finally {
      this.readsInFlight--;
    }
  }

  async #readNow(): ReturnType<KeySource['read']> {
    const scheduler = this.#scheduler;
    const fails = this.hasTrouble && scheduler.happens(this.failingPercent);
    if (fails && scheduler.happens(30)) {
      count(this.#happened, 'the provider hangs');
      await scheduler.pause(HANG_MAX_MS);
      throw new Error('the simulated provider hangs');
    }
    await scheduler.pause(0, HEALTHY_READ_MAX_MS / 2);
    const keys = [...this.published];
    await scheduler.pause(0, HEALTHY_READ_MAX_MS / 2);
    if (!fails) {
      this.lastRead = { keys, endedAtMs: scheduler.now(), endedAtWallMs: scheduler.wallNow() };
      return { keys: keys.map(kid => ({ kty: 'EC', kid })) };
    }
    if (scheduler.happens(50)) {
      count(this.#happened, 'the provider has no keys');
      return { keys: [] };
    }
    count(this.#happened, 'the provider fails');
    throw new Error('the simulated provider fails');
  }

  /** The keys of jose are imported in other threads, whose order a seed does not decide. */
  readonly keySet: KeySource['keySet'] = set => {
    const none = KEY_SOURCE.keySet({ keys: [] });
    return async (header, token) => {
      const isFound = set.keys.some(({ kid }) => kid === header.kid);
      return isFound ? new Uint8Array() : await none(header, token);
    };
  };
}

/** Tokens with known, new, removed and invented keys, and what must be true of each result. */
class Simulation {
  readonly #scheduler: Scheduler;
  readonly #happened: Happened;
  readonly #provider: ModelProvider;
  readonly #histories = new Map<string, KeyHistory>();
  #keys!: ProviderKeys;
  #keysEver = 0;
  #tokensInFlight = 0;
  /** Since when every read succeeds. */
  #healthySinceMs = 0;

  constructor(seed: number, happened: Happened) {
    this.#scheduler = new Scheduler(seed);
    this.#happened = happened;
    this.#provider = new ModelProvider(this.#scheduler, happened);
  }

  async run(): Promise<number> {
    const scheduler = this.#scheduler;
    const provider = this.#provider;
    let hasEnded = false;
    void scheduler.start(async () => {
      for (const key of [this.#newKey(), this.#newKey()]) this.#publish(key);
      if (scheduler.happens(30)) this.#makeTrouble();
      this.#open();
      for (let burst = 0; burst < BURSTS; burst++) {
        this.#disturb();
        const pauseMsMax = scheduler.pick(1_000, 20_000, MINUTE_MS, 2 * HOUR_MS, 8 * HOUR_MS);
        await scheduler.pause(0, pauseMsMax);
        this.#arrive();
      }
      await scheduler.pause(2 * TOKEN_MAX_MS);
      this.#keys[Symbol.dispose]();
      const { reads } = provider;
      await scheduler.pause(2 * HOUR_MS);
      assert.equal(provider.reads, reads, 'keys are read after the end');
      hasEnded = true;
    });
    await scheduler.runUntil(Number.POSITIVE_INFINITY, () => this.#check());
    assert.ok(hasEnded && this.#tokensInFlight === 0, 'something waits for ever');
    return scheduler.steps;
  }

  #open(): void {
    const scheduler = this.#scheduler;
    const provider = this.#provider;
    const scheduled = (callback: () => void): void => {
      provider.isScheduled = true;
      callback();
      provider.isScheduled = false;
    };
    const clock: Clock = {
      now: () => scheduler.now(),
      wallNow: () => scheduler.wallNow(),
      setTimer: (callback, delayMs) => scheduler.setTimer(() => scheduled(callback), delayMs),
      nextIteration: callback => scheduler.nextIteration(callback),
    };
    const source = { read: () => provider.read(), keySet: provider.keySet };
    const onError = (cause: unknown): void => {
      if (cause instanceof assert.AssertionError) void scheduler.start(() => Promise.reject(cause));
    };
    scheduled(() => {
      this.#keys = openProviderKeys({} as OpenidSettings, clock, onError, source);
    });
  }

  #newKey(): string {
    const key = `key ${++this.#keysEver}`;
    this.#historyOf(key);
    return key;
  }

  #historyOf(key: string): KeyHistory {
    return this.#histories.getOrInsertComputed(key, () => ({
      publishedAtMs: undefined,
      arrivals: never(),
      failures: never(),
    }));
  }

  #publish(key: string): void {
    this.#provider.published.push(key);
    this.#historyOf(key).publishedAtMs = this.#scheduler.now();
  }

  #makeTrouble(): void {
    const scheduler = this.#scheduler;
    const msMax = scheduler.pick(10_000, 10 * MINUTE_MS, 60 * HOUR_MS);
    this.#provider.troubleUntilMs = scheduler.now() + scheduler.random(msMax);
    this.#provider.failingPercent = scheduler.pick(50, 100);
  }

  #disturb(): void {
    const scheduler = this.#scheduler;
    const provider = this.#provider;
    switch (scheduler.random(12)) {
      case 0:
        this.#makeTrouble();
        break;
      case 1:
        provider.troubleUntilMs = 0;
        break;
      case 2:
        count(this.#happened, 'a key is published');
        this.#publish(this.#unpublished() ?? this.#newKey());
        break;
      case 3: {
        if (provider.published.length < 2) break;
        count(this.#happened, 'a key is removed');
        this.#historyOf(provider.published.shift()!).publishedAtMs = undefined;
        break;
      }
      case 4:
        count(this.#happened, 'the machine is suspended');
        scheduler.moveWall(scheduler.random(30 * HOUR_MS));
        break;
      case 5:
        count(this.#happened, 'the clock is set');
        scheduler.moveWall(scheduler.random(20 * HOUR_MS) - 10 * HOUR_MS);
    }
  }

  /** A key that the provider does not publish, but did, or will. */
  #unpublished(): string | undefined {
    const keys = [...this.#histories.keys()];
    return keys.findLast(key => key.startsWith('key') && !this.#provider.published.includes(key));
  }

  /** Tokens at about the same time. */
  #arrive(): void {
    const scheduler = this.#scheduler;
    for (let each = 1 + scheduler.random(3); each > 0; each--) {
      const published = this.#provider.published;
      const key = scheduler.pick(
        ...published,
        published.at(-1)!,
        this.#unpublished() ?? this.#newKey(),
        ...GUESSES,
        undefined,
      );
      void scheduler.start(async () => {
        await scheduler.pause(0, scheduler.pick(10, HANG_MAX_MS));
        this.#tokensInFlight++;
        const beganAtMs = scheduler.now();
        if (key === undefined) await this.#keys.readAgain().catch(error => this.#checkUnavailable(error));
        else await this.#present(key);
        this.#tokensInFlight--;
        const tookMs = scheduler.now() - beganAtMs;
        assert.ok(tookMs <= TOKEN_MAX_MS, `a token took ${tookMs} ms`);
      });
    }
  }

  async #present(key: string): Promise<void> {
    const scheduler = this.#scheduler;
    const history = this.#historyOf(key);
    const arrivedAtMs = scheduler.now();
    const areKnown = this.#areKnown();
    const wasKnown = areKnown && this.#provider.lastRead!.keys.includes(key);
    const { publishedAtMs } = history;
    if (!areKnown && this.#provider.lastRead !== undefined) count(this.#happened, 'the keys are too old');
    // With a healthy provider, each key is found or rejected from this time on.
    const decidedAtMs = READ_ON_DEMAND_INTERVAL_MS + HANG_MAX_MS + beganAtOf(history.arrivals, arrivedAtMs);
    if (areKnown && !wasKnown) extend(history.arrivals, arrivedAtMs, arrivedAtMs);
    try {
      await this.#keys.keyOf({ alg: 'ES256', kid: key }, { payload: '', signature: '' });
    } catch (error) {
      const isRejected = (error as { code?: string }).code === NO_MATCHING_KEY;
      assert.ok(!wasKnown, `${key} is ${isRejected ? 'rejected' : 'unavailable'}, although it is known`);
      if (isRejected) {
        const isPublished = publishedAtMs !== undefined && history.publishedAtMs === publishedAtMs;
        this.#checkRejected(key, isPublished ? publishedAtMs : Number.POSITIVE_INFINITY, arrivedAtMs);
      } else {
        this.#checkUnavailable(error);
        const isHealthy = this.#healthySinceMs + READ_ON_DEMAND_INTERVAL_MS + HANG_MAX_MS <= arrivedAtMs;
        assert.ok(!areKnown || !isHealthy || decidedAtMs > arrivedAtMs, `${key} stays unavailable`);
      }
      extend(history.failures, arrivedAtMs, scheduler.now());
      return;
    }
    count(this.#happened, 'a key is found');
    // If it is removed and published again, it is new once more.
    history.arrivals = never();
    history.failures = never();
    if (!wasKnown) count(this.#happened, 'a new key is found');
    assert.ok(this.#areKnown(), 'keys are used that are too old');
    assert.ok(this.#provider.lastRead!.keys.includes(key), `${key} is found, although the keys lack it`);
  }

  /** Whether keys were read, and are not too old by any clock. */
  #areKnown(): boolean {
    const { lastRead } = this.#provider;
    if (lastRead === undefined) return false;
    const ageMs = this.#scheduler.now() - lastRead.endedAtMs;
    const wallAgeMs = this.#scheduler.wallNow() - lastRead.endedAtWallMs;
    return Math.max(ageMs, Math.abs(wallAgeMs)) < KEYS_AGE_MAX_MS;
  }

  /**
   * A key of an earlier token may be rejected until the keys may be read again.
   *
   * @param publishedAtMs when the key was published before the token arrived, if it was
   */
  #checkRejected(key: string, publishedAtMs: number, arrivedAtMs: number): void {
    const provider = this.#provider;
    count(this.#happened, 'a key is rejected');
    assert.ok(provider.lastRead !== undefined, `${key} is rejected before keys were read`);
    const sinceReadMs = this.#scheduler.now() - provider.lastBeganAtMs;
    assert.ok(sinceReadMs < READ_ON_DEMAND_INTERVAL_MS, `${key} is rejected ${sinceReadMs} ms after a read`);
    if (publishedAtMs > arrivedAtMs) return;
    count(this.#happened, 'a key is rejected that was published since its last token');
    const isSeenBefore = beganAtOf(this.#historyOf(key).failures, arrivedAtMs) < publishedAtMs;
    assert.ok(isSeenBefore, `${key} is rejected, although it is published`);
  }

  #checkUnavailable(error: unknown): void {
    assert.ok(error instanceof KeysUnavailable, `a token fails with ${error}`);
    count(this.#happened, 'the keys are unavailable');
    const sinceReadMs = this.#scheduler.now() - this.#provider.lastBeganAtMs;
    const isLately = sinceReadMs < READ_ON_DEMAND_INTERVAL_MS;
    assert.ok(isLately, `the keys are unavailable, although the last read began ${sinceReadMs} ms ago`);
  }

  /** Checks the state after a step and its consequences. */
  #check(): void {
    if (this.#provider.hasTrouble) this.#healthySinceMs = this.#scheduler.now() + HANG_MAX_MS;
    if (this.#areKnown())
      assert.equal(this.#keys.fault(), undefined, 'a fault is shown, although keys are known');
  }
}

export const providerKeys: Part = {
  name: 'provider-keys',
  simulate: (seed, happened) => new Simulation(seed, happened).run(),
};
