import assert from 'node:assert/strict';
import { StoreUnavailable } from '../../src/core/commit/store-errors.ts';
import {
  type StoredToken,
  TOKEN_GROUP_SIZE,
  type TokenGroup,
  tokenGroupOf,
} from '../../src/core/tokens/stored-token.ts';
import {
  TOKEN_LOOKUP_TIMEOUT_MS,
  TokenCache,
  type TokenLookup,
  type TokenSource,
} from '../../src/core/tokens/token-cache.ts';
import { count, type Happened, type Part } from './part.ts';
import { Scheduler } from './scheduler.ts';

/** A revoked token is rejected within this time, whatever hangs. */
const REVOKED_WITHIN_MS = 5_000;
/** Longest time of a lookup. A timer may be late. */
const LOOKUP_MAX_MS = TOKEN_LOOKUP_TIMEOUT_MS + 50;
/** With a healthy store for this long, every lookup gets an answer. */
const HEALTHY_MS = 5_000;
const RUN_MS = 15_000;
/** Longest time of half a statement that hangs. */
const HANG_MAX_MS = 5_000;
const GROUPS = 3;

interface History {
  /** From a time on, until the next state. */
  states: { sinceMs: number; isValid: boolean }[];
  expiresAt: number | null;
  /** When the service learned of its own change; real time. A failover may have undone it before. */
  changedHereAtMs: number;
  /** When the service learned that its own revocation is stored; a failover may undo it. */
  revokedHereAtMs: number | undefined;
}

/**
 * A store of tokens, as both engines offer it. A statement takes effect between its call and its
 * result, and the result may be lost.
 *
 * On PostgreSQL a fingerprint is a digest of a group, and a standby may take over. On SQLite it names
 * a connection and the commits of other connections, for all groups the same. One statement runs at a
 * time there, and a failure ends the connection.
 */
class ModelStore implements TokenSource {
  readonly #scheduler: Scheduler;
  readonly #happened: Happened;
  readonly #isSqlite: boolean;
  readonly tokens = new Map<string, StoredToken>();
  readonly histories = new Map<string, History>();
  /** The last recorded day of use of each token. */
  readonly usedDays = new Map<number, string>();
  #tokensEver = 0;
  #changes = 0;
  #connection = 1;
  #othersCommits = 0;
  /** What a standby has. */
  #replicated: { tokens: StoredToken[]; changes: number } = { tokens: [], changes: 0 };
  /** Statements that are called before this time may fail or hang. */
  #troubleUntilMs = 0;
  #statementsInTrouble = 0;
  /** Since when every statement has succeeded soon. */
  healthySinceMs = 0;
  /** The last statement of SQLite. */
  #last: Promise<unknown> = Promise.resolve();
  #clockMovedAtMs = 0;
  /** For how long the machine was suspended. */
  suspendedMs = 0;

  constructor(scheduler: Scheduler, happened: Happened) {
    this.#scheduler = scheduler;
    this.#happened = happened;
    this.#isSqlite = scheduler.happens(50);
  }

  /** Ms of real time, which passes while the machine is suspended. */
  realNow(): number {
    return this.#scheduler.now() + this.suspendedMs;
  }

  tokenFingerprints(): Promise<ReadonlyMap<number, string>> {
    return this.#statement(() => {
      const groups = Map.groupBy(this.tokens.values(), ({ id }) => tokenGroupOf(id));
      const commits = `${this.#connection} ${this.#othersCommits}`;
      return new Map(
        [...groups].map(([group, tokens]) => [group, this.#isSqlite ? commits : JSON.stringify(tokens)]),
      );
    });
  }

  tokensOfGroup(group: number): Promise<TokenGroup> {
    return this.#statement(() => {
      const tokens = [...this.tokens.values()].filter(({ id }) => tokenGroupOf(id) === group);
      return { tokens, fingerprint: this.#isSqlite ? undefined : JSON.stringify(tokens) };
    });
  }

  recordTokenUse(ids: number[], day: string): Promise<void> {
    return this.#statement(() => {
      for (const id of ids) noteLater(this.usedDays, id, day);
    });
  }

  /** @param isOurs whether the service does it; otherwise a command or another instance */
  create(isOurs: boolean): Promise<StoredToken> {
    const number = ++this.#tokensEver;
    const expiresAt = this.#scheduler.happens(20)
      ? this.#scheduler.wallNow() + this.#scheduler.random(RUN_MS)
      : null;
    return this.#statement(() => {
      const token: StoredToken = {
        id: (number % GROUPS) * TOKEN_GROUP_SIZE + Math.ceil(number / GROUPS),
        hash: `hash ${number}`,
        label: `label ${number}`,
        createdAt: this.#scheduler.wallNow(),
        expiresAt,
        revokedAt: null,
        lastUsedDay: null,
        changeNumber: ++this.#changes,
      };
      this.histories.set(token.hash, {
        states: [],
        expiresAt,
        changedHereAtMs: Number.NEGATIVE_INFINITY,
        revokedHereAtMs: undefined,
      });
      this.#commit(token, isOurs);
      return token;
    });
  }

  /** @returns undefined if there is no such token any more */
  revoke(hash: string, isOurs: boolean): Promise<StoredToken | undefined> {
    return this.#statement(() => {
      const token = this.tokens.get(hash);
      if (token === undefined || token.revokedAt !== null) return token;
      const revoked = { ...token, revokedAt: this.#scheduler.wallNow(), changeNumber: ++this.#changes };
      this.#commit(revoked, isOurs);
      return revoked;
    });
  }

  makeTrouble(): void {
    const scheduler = this.#scheduler;
    switch (scheduler.random(5)) {
      case 0:
        this.#troubleUntilMs = scheduler.now() + scheduler.random(6_000);
        break;
      case 1:
        this.#connection++;
        break;
      case 2:
        this.#replicated = { tokens: [...this.tokens.values()], changes: this.#changes };
        break;
      case 3:
        if (!this.#isSqlite) this.#failOver();
        break;
      case 4:
        this.#moveClock();
    }
  }

  /**
   * Suspends the machine, or sets its clock. Not both in a short time: if an operator sets the clock
   * back by the time for which the machine was suspended, no clock of Node shows that time.
   */
  #moveClock(): void {
    const scheduler = this.#scheduler;
    if (scheduler.now() < this.#clockMovedAtMs + 2 * REVOKED_WITHIN_MS) return;
    this.#clockMovedAtMs = scheduler.now();
    this.healthySinceMs = Math.max(this.healthySinceMs, scheduler.now());
    if (scheduler.happens(50)) {
      count(this.#happened, 'the clock is set');
      scheduler.moveWall(scheduler.random(20_000) - 10_000);
    } else {
      count(this.#happened, 'the machine is suspended');
      const ms = scheduler.random(10_000);
      scheduler.moveWall(ms);
      this.suspendedMs += ms;
    }
  }

  endTrouble(): void {
    this.#troubleUntilMs = 0;
  }

  /** The standby takes over. What it lacks is lost, and it gives change numbers a second time. */
  #failOver(): void {
    count(this.#happened, 'a standby takes over');
    const { tokens, changes } = this.#replicated;
    for (const hash of this.tokens.keys())
      if (!tokens.some(each => each.hash === hash)) this.#note(hash, false);
    this.tokens.clear();
    for (const token of tokens) {
      this.tokens.set(token.hash, token);
      this.#note(token.hash, token.revokedAt === null);
      this.histories.get(token.hash)!.revokedHereAtMs = undefined;
    }
    this.#changes = changes;
  }

  #commit(token: StoredToken, isOurs: boolean): void {
    this.tokens.set(token.hash, token);
    if (!isOurs) this.#othersCommits++;
    this.#note(token.hash, token.revokedAt === null);
  }

  #note(hash: string, isValid: boolean): void {
    this.histories.get(hash)!.states.push({ sinceMs: this.realNow(), isValid });
  }

  #statement<Result>(execute: () => Result): Promise<Result> {
    if (!this.#isSqlite) return this.#run(execute);
    const result = this.#last.then(() => this.#run(execute));
    this.#last = result.catch(() => this.#connection++);
    return result;
  }

  async #run<Result>(execute: () => Result): Promise<Result> {
    const scheduler = this.#scheduler;
    if (scheduler.now() >= this.#troubleUntilMs) return await this.#execute(execute, 20, 0);
    this.#statementsInTrouble++;
    this.healthySinceMs = Number.POSITIVE_INFINITY;
    try {
      return await this.#execute(execute, scheduler.pick(0, 500, HANG_MAX_MS), 25);
    } finally {
      if (--this.#statementsInTrouble === 0) this.healthySinceMs = scheduler.now();
    }
  }

  async #execute<Result>(execute: () => Result, halfMsMax: number, failingPercent: number): Promise<Result> {
    const scheduler = this.#scheduler;
    await scheduler.pause(0, halfMsMax);
    if (scheduler.happens(failingPercent)) throw new StoreUnavailable('the simulated store fails');
    const result = execute();
    await scheduler.pause(0, halfMsMax);
    if (!scheduler.happens(failingPercent)) return result;
    count(this.#happened, 'a result is lost');
    throw new StoreUnavailable('the simulated result is lost');
  }
}

/** @param day as `YYYY-MM-DD`; an earlier one than the noted one changes nothing */
function noteLater(days: Map<number, string>, id: number, day: string): void {
  if ((days.get(id) ?? '') < day) days.set(id, day);
}

/** Clients, an operator and other programs, and what must be true of each lookup. */
class Simulation {
  readonly #scheduler: Scheduler;
  readonly #happened: Happened;
  readonly #store: ModelStore;
  #cache!: TokenCache;
  #lookups = 0;
  #isOver = false;
  readonly #acceptedDays = new Map<number, string>();

  constructor(seed: number, happened: Happened) {
    this.#scheduler = new Scheduler(seed);
    this.#happened = happened;
    this.#store = new ModelStore(this.#scheduler, happened);
  }

  async run(): Promise<number> {
    const scheduler = this.#scheduler;
    const running = scheduler.start(async () => {
      for (let count = scheduler.random(6); count > 0; count--) await this.#store.create(false);
      this.#cache = await TokenCache.open(this.#store, () => {}, scheduler);
      const tasks = [
        ...Array.from({ length: 3 }, () => this.#repeat(300, () => this.#lookUp())),
        this.#repeat(1_500, () => this.#change(true)),
        this.#repeat(1_500, () => this.#change(false)),
        this.#repeat(4_000, async () => this.#store.makeTrouble()),
      ];
      await scheduler.pause(RUN_MS);
      this.#isOver = true;
      await Promise.all(tasks);
      this.#store.endTrouble();
      // Until the last statement that hangs has ended, and a refresh has repeated what failed.
      await scheduler.pause(2 * HANG_MAX_MS + HEALTHY_MS);
      await this.#cache.close();
      assert.deepEqual(this.#store.usedDays, this.#acceptedDays, 'the recorded days of use');
    });
    let hasEnded = false;
    void running.then(() => (hasEnded = true));
    const endMs = scheduler.now() + 3 * RUN_MS + 10 * HANG_MAX_MS;
    await scheduler.runUntil(endMs, () => {});
    assert.ok(hasEnded && this.#lookups === 0, 'something waits for ever');
    return scheduler.steps;
  }

  #repeat(pauseMsMax: number, action: () => Promise<void>): Promise<void> {
    return this.#scheduler.repeat(pauseMsMax, () => this.#isOver, action);
  }

  async #change(isOurs: boolean): Promise<void> {
    const hash = this.#scheduler.pick(undefined, ...this.#store.tokens.keys());
    try {
      if (hash === undefined) {
        const created = await this.#store.create(isOurs);
        if (!isOurs) return;
        this.#cache.add(created);
        this.#store.histories.get(created.hash)!.changedHereAtMs = this.#store.realNow();
      } else {
        const revoked = await this.#store.revoke(hash, isOurs);
        if (!isOurs || revoked === undefined) return;
        this.#cache.add(revoked);
        this.#store.histories.get(hash)!.changedHereAtMs = this.#store.realNow();
        const isStored = this.#store.tokens.get(hash)?.revokedAt === revoked.revokedAt;
        if (isStored) this.#store.histories.get(hash)!.revokedHereAtMs ??= this.#scheduler.now();
        count(this.#happened, 'the service revokes a token');
      }
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
    }
  }

  async #lookUp(): Promise<void> {
    const hash = this.#scheduler.pick('guess', ...this.#store.histories.keys());
    const beganAtMs = this.#scheduler.now();
    const beganAtRealMs = this.#store.realNow();
    const wasKnown = this.#store.histories.has(hash);
    this.#lookups++;
    const found = this.#scheduler.happens(20) ? this.#cached(hash) : await this.#cache.lookUp(hash);
    this.#lookups--;
    if (found === undefined) return;
    const tookMs = this.#scheduler.now() - beganAtMs;
    assert.ok(tookMs <= LOOKUP_MAX_MS, `a lookup took ${tookMs} ms`);
    if (found.kind === 'valid') this.#checkAccepted(hash, found.id, beganAtMs);
    else if (found.kind === 'rejected' && wasKnown) this.#checkRejected(hash, beganAtRealMs);
    else if (found.kind === 'storeUnavailable') this.#checkUnavailable(beganAtMs);
  }

  /** @returns undefined if the cache alone does not accept it, which says nothing */
  #cached(hash: string): TokenLookup | undefined {
    const id = this.#cache.lookUpCached(hash);
    return id === undefined ? undefined : { kind: 'valid', id };
  }

  #checkAccepted(hash: string, id: number, beganAtMs: number): void {
    count(this.#happened, 'accepted');
    noteLater(this.#acceptedDays, id, new Date(this.#scheduler.wallNow()).toISOString().slice(0, 10));
    const { states, expiresAt, changedHereAtMs, revokedHereAtMs } = this.#store.histories.get(hash)!;
    const last = states.at(-1)!;
    const endedAtMs = this.#store.tokens.has(hash) ? last.sinceMs : Math.max(last.sinceMs, changedHereAtMs);
    const invalidForMs = last.isValid ? 0 : this.#store.realNow() - endedAtMs;
    assert.ok(invalidForMs <= REVOKED_WITHIN_MS, `${hash} is accepted ${invalidForMs} ms after its end`);
    if (invalidForMs > 0) count(this.#happened, 'accepted shortly after its end');
    assert.ok(expiresAt === null || expiresAt > this.#scheduler.wallNow(), `${hash} has expired`);
    const isRevokedHere = revokedHereAtMs !== undefined && beganAtMs >= revokedHereAtMs;
    assert.ok(!isRevokedHere, `${hash} is accepted, although this service has revoked it`);
  }

  #checkRejected(hash: string, beganAtRealMs: number): void {
    count(this.#happened, 'rejected');
    const { states, expiresAt, changedHereAtMs } = this.#store.histories.get(hash)!;
    if (expiresAt !== null) return;
    const invalid = states.findLastIndex(({ isValid }) => !isValid);
    // The end of the last time in which it was invalid.
    const validSinceMs = states[invalid + 1]?.sinceMs ?? Number.POSITIVE_INFINITY;
    const isOld =
      invalid === -1
        ? validSinceMs <= beganAtRealMs
        : Math.max(validSinceMs, changedHereAtMs) + REVOKED_WITHIN_MS <= beganAtRealMs;
    assert.ok(!isOld, `${hash} is rejected, although it is valid`);
  }

  #checkUnavailable(beganAtMs: number): void {
    count(this.#happened, 'storeUnavailable');
    const isHealthy = this.#store.healthySinceMs + HEALTHY_MS <= beganAtMs;
    assert.ok(!isHealthy, 'a lookup gets no answer from a healthy store');
  }
}

export const tokenCache: Part = {
  name: 'token-cache',
  simulate: (seed, happened) => new Simulation(seed, happened).run(),
};
