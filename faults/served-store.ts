import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import type { LoggedRequest } from '../test/harness/client-log.ts';
import { type ServeProcess, type StartOptions, startServe } from '../test/harness/program.ts';
import { createTokens, RandomLoad } from '../test/harness/random-load.ts';
import { seededRandom } from '../test/harness/seeded-random.ts';
import { faultsIn } from '../test/harness/stored-revisions.ts';
import { type Mutant, type Order, type Result, spread } from './scenario.ts';

/** Every request is answered by then, whatever happens to the store: that is a promise. */
const RESPONSE_MS_MAX = 5_000;
/** From the end of a fault to the next plant that is confirmed, by services that go on. */
const RECOVERY_MS_MAX = 1_000;
/** From the start of a service to the first. */
const RESTART_MS_MAX = 2_000;
/** Plants that are confirmed before each fault. */
const STORED_BEFORE_FAULT = 100;

/** A store, and how its services are started. */
export interface StoreSettings {
  database: string;
  /** The same store as it is read in the end, where that is not as the services reach it. */
  readAs?: string;
  /** How each instance is started, where that is not as all others are; by default one on SQLite, three on PostgreSQL. */
  instances?: readonly InstanceSettings[];
  /** Modules of this folder that are loaded before the service. */
  modules?: readonly string[];
  env?: Record<string, string>;
}

export interface InstanceSettings extends Pick<StartOptions, 'prefix'> {
  database?: string;
  args?: string[];
}

/**
 * Services on one store, each a process of its own, under the load of clients that go on through whatever happens; and all
 * that these were told.
 */
export class ServedStore implements AsyncDisposable {
  /** Every request that was sent to this store. */
  readonly log: LoggedRequest[] = [];
  /** Each promise that was broken, as far as it is known before the comparison. */
  readonly faults: string[] = [];
  readonly restartMs: number[] = [];
  readonly recoveryMs: number[] = [];
  tokens: readonly string[] = [];
  readonly #settings: StoreSettings;
  readonly #nodeArgs: string[];
  readonly #starts: readonly InstanceSettings[];
  /** Undefined while one does not run. */
  readonly #instances: (ServeProcess | undefined)[];
  readonly #seed: number;
  #load: RandomLoad | undefined;

  constructor(settings: StoreSettings, seed: number, mutant?: Mutant) {
    const engine = settings.database.startsWith('sqlite:') ? 'sqlite' : 'postgres';
    const mutants = mutant === undefined ? [] : [`./mutants/${engine}-${mutant}.ts`];
    this.#settings = settings;
    this.#starts = settings.instances ?? new Array(engine === 'sqlite' ? 1 : 3).fill({});
    this.#instances = this.#starts.map(() => undefined);
    this.#seed = seed;
    this.#nodeArgs = [...(settings.modules ?? []), ...mutants].flatMap(module => [
      '--import',
      fileURLToPath(new URL(module, import.meta.url)),
    ]);
  }

  /** The only instance, or one of several. @throws where it is not running */
  instance(index = 0): ServeProcess {
    assert.ok(this.#instances[index] !== undefined, 'the service is running');
    return this.#instances[index];
  }

  get load(): RandomLoad {
    assert.ok(this.#load !== undefined, 'there is a load');
    return this.#load;
  }

  /**
   * Starts all that do not run.
   *
   * @throws AssertionError with what it said, when one ends instead of taking plants
   */
  async start(): Promise<void> {
    const { database, env = {} } = this.#settings;
    for (const [index, { prefix, args = [], ...own }] of this.#starts.entries()) {
      const options = { env, nodeArgs: this.#nodeArgs, prefix };
      this.#instances[index] ??= await startServe(own.database ?? database, args, options).catch(error =>
        assert.fail(error.message),
      );
    }
    if (this.tokens.length === 0) this.tokens = await createTokens(database);
  }

  /** Starts all, and the load; settles when each instance has confirmed a plant. */
  async startUnderLoad(): Promise<void> {
    const startedAt = performance.now();
    await this.start();
    // Whoever has no instance of its own takes another one, as behind a load balancer.
    const urls = this.#instances.map(
      (_, index) => () =>
        (this.#instances[index] ?? this.#instances.find(each => each !== undefined))?.url ?? NOWHERE,
    );
    this.#load = new RandomLoad(urls, this.tokens, this.log, this.#seed + this.log.length);
    this.restartMs.push(Math.max(...(await this.#load.storedByEachAfter(startedAt))) - startedAt);
  }

  /** Ends all at once, as a power cut or an administrator in a hurry does, and settles when all clients have noticed. */
  async kill(): Promise<void> {
    const running = [...this.#instances];
    this.#instances.fill(undefined);
    await Promise.all(running.map(each => each?.stop('SIGKILL')));
    await this.#load?.stop();
    this.#load = undefined;
  }

  /** Ends one, which has no new connections from then on, and starts another in its place. @returns its exit code */
  async replace(index: number, signal: 'SIGKILL' | 'SIGTERM'): Promise<number | null> {
    const ending = this.instance(index);
    this.#instances[index] = undefined;
    const { exitCode } = await ending.stop(signal);
    await this.start();
    return exitCode;
  }

  /** Settles when clients of each instance have had a plant confirmed after the fault was over. */
  async recovered(overAt = performance.now()): Promise<void> {
    this.recoveryMs.push(Math.max(...(await this.load.storedByEachAfter(overAt))) - overAt);
  }

  /** Statuses of the responses from this place in the log on; undefined for a request that has none. */
  statusesFrom(begin: number): (number | undefined)[] {
    return this.log.slice(begin).map(({ response }) => response?.status);
  }

  /** Lets clients have their last response, ends all, and compares what they were told with what is stored. */
  async compare(): Promise<void> {
    await this.#load?.stop();
    await this.kill();
    const { database, readAs = database } = this.#settings;
    const found = await faultsIn(readAs, this.log).catch(error => [`it cannot be read: ${error.message}`]);
    this.faults.push(...found);
    if (readAs.startsWith('sqlite:')) this.faults.push(...unsound(readAs.replace('sqlite:', '')));
  }

  get longestResponseMs(): number {
    return this.log.reduce((most, { sentAt, respondedAt }) => Math.max(most, respondedAt - sentAt), 0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }
}

/** Nobody listens there: the port of a service for which the system has none (discard, RFC 863). */
const NOWHERE = 'http://127.0.0.1:9';

function unsound(path: string): string[] {
  try {
    using database = new DatabaseSync(path, { readOnly: true });
    const { integrity_check: check } = database.prepare('PRAGMA integrity_check').get() ?? {};
    return check === 'ok' ? [] : [`integrity_check: ${check}`];
  } catch (error) {
    return [`integrity_check: ${(error as Error).message}`];
  }
}

/** What a fault is injected into, and with what. */
export interface Round<Place> {
  store: ServedStore;
  place: Place;
  /** Faults injected before this one. */
  number: number;
  /** Gives the next whole number from 0 to below. */
  random(below: number): number;
}

/** Faults on one store after the other. */
export interface Plan<Place> {
  /** On one store; beyond that, most of the time would go into comparing what is stored. */
  roundsPerStore: number;
  roundsMax?: number;
  /** Makes a place for a store. What it opens is closed behind the comparison. */
  setUp(opened: AsyncDisposableStack, store: number): Promise<{ store: StoreSettings; place: Place }>;
  /**
   * Injects a fault under load and takes it back; the load goes on behind it.
   *
   * @returns what it was, for the count of each
   */
  round(round: Round<Place>): Promise<string>;
  /** Says what is wrong beside what is wrong of every store. */
  assess?(store: ServedStore, place: Place): Promise<string[]>;
}

/** Carries a plan out for as long as there is time, and judges each store by what its clients were told. */
export async function runOnStores<Place>(order: Order, plan: Plan<Place>): Promise<Result> {
  const { seed, mutant, signal, tell } = order;
  const untilMs = performance.now() + order.budgetMs;
  // A weakness is found soon, and what is found ends the run.
  const roundsPerStore = Math.ceil(plan.roundsPerStore / (mutant === undefined ? 1 : 3));
  const roundsMax = Math.min(plan.roundsMax ?? Infinity, order.roundsMax ?? Infinity);
  const faults: string[] = [];
  const late: string[] = [];
  const counts: Record<string, number> = {};
  const count = (what: string): void => {
    counts[what] = (counts[what] ?? 0) + 1;
  };
  const measured = { longestMs: 0, restartMs: [] as number[], recoveryMs: [] as number[] };
  let rounds = 0;
  const isOver = (): boolean => signal.aborted || performance.now() >= untilMs || rounds >= roundsMax;
  for (let stores = 1; !isOver() && (mutant === undefined || faults.length === 0); stores++) {
    await using opened = new AsyncDisposableStack();
    const { store: settings, place } = await plan.setUp(opened, stores);
    const random = seededRandom(seed + stores);
    const store = opened.use(new ServedStore(settings, seed + stores, mutant));
    try {
      await store.startUnderLoad();
      // What is broken stays so: whatever else was found on it would say nothing.
      for (let ofStore = 0; ofStore < roundsPerStore && !isOver() && store.faults.length === 0; ofStore++) {
        await store.load.keeps(STORED_BEFORE_FAULT);
        count(await plan.round({ store, place, random, number: rounds }));
        rounds++;
      }
      await store.load.keeps(STORED_BEFORE_FAULT);
    } catch (error) {
      // What a service does not do in time, or at all. Everything else is a fault of the scenario.
      if (!(error instanceof assert.AssertionError)) throw error;
      store.faults.push(error.message);
    }
    await store.compare();
    store.faults.push(...((await plan.assess?.(store, place)) ?? []));
    faults.push(...store.faults.map(fault => `store ${stores}: ${fault}`));
    late.push(...lateOn(store).map(fault => `store ${stores}: ${fault}`));
    for (const { response } of store.log) count(outcomeOf(response));
    measured.longestMs = Math.max(measured.longestMs, store.longestResponseMs);
    measured.restartMs.push(...store.restartMs.slice(1));
    measured.recoveryMs.push(...store.recoveryMs);
    tell(`${rounds} faults injected, ${faults.length} found`);
  }
  return {
    ...{ faults, late },
    figures: {
      ...{ 'faults injected': rounds, ...counts },
      'longest response': `${Math.round(measured.longestMs)} ms`,
      'end of a fault to next 200, of the last instance': spread(measured.recoveryMs),
      'restart to first 200': spread(measured.restartMs),
    },
  };
}

function outcomeOf(response: LoggedRequest['response']): string {
  if (response === undefined || response.status >= 500) return 'requests unknown';
  return `requests ${response.outcome ?? 'rejected'}`;
}

/** The first start is not judged: it makes the store. */
function lateOn({ restartMs, recoveryMs, longestResponseMs }: ServedStore): string[] {
  const laterThan = (tookMs: number[], mostMs: number, what: string): string[] =>
    tookMs.filter(ms => ms > mostMs).map(ms => `${what} took ${Math.round(ms)} ms`);
  return [
    ...laterThan(restartMs.slice(1), RESTART_MS_MAX, 'from a restart to the first 200'),
    ...laterThan(recoveryMs, RECOVERY_MS_MAX, 'from the end of a fault to the next 200'),
    ...laterThan([longestResponseMs], RESPONSE_MS_MAX, 'a response'),
  ];
}
