import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import type { LoggedRequest } from '../test/harness/client-log.ts';
import { type ServeProcess, type StartOptions, startServe } from '../test/harness/program.ts';
import { createTokens, RandomLoad } from '../test/harness/random-load.ts';
import { seededRandom } from '../test/harness/seeded-random.ts';
import { faultsIn } from '../test/harness/stored-revisions.ts';
import { type Mutant, type Order, type Result, spread } from './scenario.ts';

/** The service promises a response within this time, also while the store is unavailable. */
const RESPONSE_MAX_MS = 5_000;
/** From the end of a fault to the next 200. TCP repeats a lost SYN after 1 s (RFC 6298 section 2.1). */
const RECOVERY_MAX_MS = 1_500;
/** From the start of a service to its first confirmed plant. */
const RESTART_MAX_MS = 2_000;
/** Confirmed plants before each fault. */
const STORED_BEFORE_FAULT = 100;

/** A store, with settings of its services. */
export interface StoreSettings {
  database: string;
  /** Settings of each instance. By default there is one on SQLite and three on PostgreSQL. */
  instances?: readonly InstanceSettings[];
  /** Modules of this folder to load before the service. */
  modules?: readonly string[];
  env?: Record<string, string>;
}

export interface InstanceSettings extends Pick<StartOptions, 'prefix'> {
  database?: string;
  args?: string[];
}

/**
 * Services on one store, each in a separate process, with clients that send plants during all
 * faults. Records the responses of the clients.
 */
export class ServedStore implements AsyncDisposable {
  /** All requests to this store. */
  readonly log: LoggedRequest[] = [];
  /** Broken promises, before the comparison only those that are known by then. */
  readonly faults: string[] = [];
  readonly restartMs: number[] = [];
  readonly recoveryMs: number[] = [];
  tokens: readonly string[] = [];
  readonly #settings: StoreSettings;
  readonly #nodeArgs: string[];
  readonly #starts: readonly InstanceSettings[];
  /** Undefined for an instance that does not run. */
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

  /** @throws if the instance does not run */
  instance(index = 0): ServeProcess {
    assert.ok(this.#instances[index] !== undefined, 'the service is running');
    return this.#instances[index];
  }

  get load(): RandomLoad {
    assert.ok(this.#load !== undefined, 'there is a load');
    return this.#load;
  }

  /**
   * Starts all instances that do not run.
   *
   * @throws AssertionError with its messages, if one ends instead of accepting plants
   */
  async start(): Promise<void> {
    const { database, env = {} } = this.#settings;
    for (const [index, { prefix, args = [], ...others }] of this.#starts.entries()) {
      const options = { env, nodeArgs: this.#nodeArgs, prefix };
      this.#instances[index] ??= await startServe(others.database ?? database, args, options).catch(error =>
        assert.fail(error.message),
      );
    }
    if (this.tokens.length === 0) this.tokens = await createTokens(database);
  }

  /** Starts all instances and the load; settles when each instance has confirmed a plant. */
  async startUnderLoad(): Promise<void> {
    const startedAt = performance.now();
    await this.start();
    // Clients of a stopped instance use another one, as behind a load balancer.
    const urls = this.#instances.map(
      (_, index) => () =>
        (this.#instances[index] ?? this.#instances.find(each => each !== undefined))?.url ?? NO_SERVER,
    );
    this.#load = new RandomLoad(urls, this.tokens, this.log, this.#seed + this.log.length);
    this.restartMs.push(Math.max(...(await this.#load.storedByEachAfter(startedAt))) - startedAt);
  }

  /** Kills all instances at once; settles when all clients have noticed. */
  async kill(): Promise<void> {
    const running = [...this.#instances];
    this.#instances.fill(undefined);
    await Promise.all(running.map(each => each?.stop('SIGKILL')));
    await this.#load?.stop();
    this.#load = undefined;
  }

  /** Ends one instance and starts another in its place. @returns the exit code of the first */
  async replace(index: number, signal: 'SIGKILL' | 'SIGTERM'): Promise<number | null> {
    const ending = this.instance(index);
    this.#instances[index] = undefined;
    const { exitCode } = await ending.stop(signal);
    await this.start();
    return exitCode;
  }

  /** Settles when each instance has confirmed a plant after the end of the fault. */
  async recovered(overAt = performance.now()): Promise<void> {
    this.recoveryMs.push(Math.max(...(await this.load.storedByEachAfter(overAt))) - overAt);
  }

  /** Ends clients and instances, and compares the responses with the stored plants. */
  async compare(): Promise<void> {
    await this.#load?.stop();
    await this.kill();
    // The URL of the services. It names all hosts, and only one of them accepts writes after a
    // failover.
    const { database } = this.#settings;
    const found = await faultsIn(database, this.log).catch(error => [
      `the store cannot be read: ${error.message}`,
    ]);
    this.faults.push(...found);
    if (database.startsWith('sqlite:')) this.faults.push(...integrityFaults(database.replace('sqlite:', '')));
  }

  get longestResponseMs(): number {
    return this.log.reduce((most, { sentAt, respondedAt }) => Math.max(most, respondedAt - sentAt), 0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }
}

/** No server listens on this port (discard, RFC 863). */
const NO_SERVER = 'http://127.0.0.1:9';

function integrityFaults(path: string): string[] {
  try {
    using database = new DatabaseSync(path, { readOnly: true });
    const { integrity_check: check } = database.prepare('PRAGMA integrity_check').get() ?? {};
    return check === 'ok' ? [] : [`integrity_check: ${check}`];
  } catch (error) {
    return [`integrity_check: ${(error as Error).message}`];
  }
}

/** The store and the means for one fault. */
export interface Round<Place> {
  store: ServedStore;
  place: Place;
  /** The number of earlier faults. */
  number: number;
  /** @returns a random integer from 0 to `below - 1` */
  random(below: number): number;
}

/** A sequence of faults on several stores. */
export interface Plan<Place> {
  /** With more rounds, the comparison of one store would take most of the time. */
  roundsPerStore: number;
  roundsMax?: number;
  /** Prepares a store. `opened` is closed after the comparison. */
  setUp(opened: AsyncDisposableStack, store: number): Promise<{ store: StoreSettings; place: Place }>;
  /**
   * Injects a fault under load and ends it. The load continues.
   *
   * @returns the name of the fault, under which it is counted
   */
  round(round: Round<Place>): Promise<string>;
}

/**
 * Runs a plan until its time is over, and compares each store with the responses of its clients.
 */
export async function runOnStores<Place>(order: Order, plan: Plan<Place>): Promise<Result> {
  const { seed, mutant, signal, tell } = order;
  const untilMs = performance.now() + order.budgetMs;
  // A mutant is detected soon, and then the run ends.
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
      // At least one fault, also if the start took the rest of the time. After a broken promise,
      // further findings on this store would mean nothing.
      let ofStore = 0;
      do {
        await store.load.stores(STORED_BEFORE_FAULT);
        count(await plan.round({ store, place, random, number: rounds }));
        rounds++;
      } while (++ofStore < roundsPerStore && !isOver() && store.faults.length === 0);
      await store.load.stores(STORED_BEFORE_FAULT);
    } catch (error) {
      // An AssertionError is a timeout of the service. Other errors are faults of the scenario.
      if (!(error instanceof assert.AssertionError)) throw error;
      store.faults.push(error.message);
    }
    await store.compare();
    faults.push(...store.faults.map(fault => `store ${stores}: ${fault}`));
    late.push(...lateOn(store).map(fault => `store ${stores}: ${fault}`));
    for (const { response } of store.log) count(outcomeOf(response));
    measured.longestMs = Math.max(measured.longestMs, store.longestResponseMs);
    measured.restartMs.push(...store.restartMs.slice(1));
    measured.recoveryMs.push(...store.recoveryMs);
    tell(`${rounds} faults injected, ${faults.length} found ${faults.slice(0, 3)}`);
  }
  return {
    faults,
    late,
    measurements: {
      'faults injected': rounds,
      ...counts,
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

/** Ignores the first start, which creates the store. */
function lateOn({ restartMs, recoveryMs, longestResponseMs }: ServedStore): string[] {
  const laterThan = (tookMs: number[], mostMs: number, what: string): string[] =>
    tookMs.filter(ms => ms > mostMs).map(ms => `${what} took ${Math.round(ms)} ms`);
  return [
    ...laterThan(restartMs.slice(1), RESTART_MAX_MS, 'from a restart to the first 200'),
    ...laterThan(recoveryMs, RECOVERY_MAX_MS, 'from the end of a fault to the next 200'),
    ...laterThan([longestResponseMs], RESPONSE_MAX_MS, 'a response'),
  ];
}
