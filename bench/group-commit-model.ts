import { BATCH_PLANTS_MAX } from '../src/contract/limits.ts';
import { quantile } from '../test/harness/statistics.ts';

/**
 * What a plant costs, each part measured by itself. All times are in µs, and of CPU where nothing else is said. A thread
 * that slept pays for it when it is woken, with caches that others filled meanwhile.
 */
export interface Costs {
  /** How long the writer sleeps in a commit, until the disk has it, and what each plant of the batch adds to that. */
  flushUs: number;
  flushRowUs: number;
  /** Of the writer for a commit, for each plant in it, and for being woken to one. */
  writerBatchUs: number;
  writerRowUs: number;
  writerWakeUs: number;
  /** Of the main thread for a request, for a batch, and for being woken. */
  mainRequestUs: number;
  mainBatchUs: number;
  mainWakeUs: number;
  /** Of the load for a request, and for being woken. */
  clientRequestUs: number;
  clientWakeUs: number;
  /** From waking a thread until it runs. */
  wakeDelayUs: number;
  /** Shared by the load, the main thread and the writer. */
  cores: number;
}

/** A closed loop, in which each connection sends again when it has its answer; or an open one, at even intervals. */
export type Load = { connections: number } | { ratePerSecond: number };

/** What the model says of a load. */
export interface Prediction {
  /** Answers. */
  ratePerSecond: number;
  /** From sending a request, in an open loop from when it was due, to having read its answer. */
  p50Us: number;
  p99Us: number;
  /** Mean number of plants in a commit. */
  batchPlants: number;
}

/** As SqliteEngine has it: one batch is flushed while the next one waits at the writer. */
const COMMITS_IN_FLIGHT_MAX = 2;
/** Requests that are simulated: those at the start are not counted. */
const WARM_UP_REQUESTS = 5_000;
const COUNTED_REQUESTS = 40_000;
/** Of an open load, which must be answered as fast as it comes. */
const HELD_SHARE = 0.99;
/** What is closer than this is at the same time. */
const ROUNDING_US = 1e-6;

/**
 * Predicts what the service does under a load, by playing it through event by event; nothing in it is random.
 *
 * The load, the main thread and the writer are threads that share the cores evenly. The main thread works in turns, as
 * an event loop does: it takes what has arrived, requests and ended batches, and at the end of the turn makes batches of
 * the plants that are queued, by the rules of src/store/group-commit.ts. The writer spends CPU on a batch and then sleeps
 * for the flush.
 *
 * @throws {RangeError} when the service cannot hold an open load: what waits would grow without end
 */
export function predict(costs: Costs, load: Load): Prediction {
  return new Simulation(costs, load).run();
}

class Simulation {
  readonly #costs: Costs;
  readonly #load: Load;
  readonly #clock: Clock;
  readonly #client: Thread;
  readonly #main: Thread;
  readonly #writer: Thread;
  /** What has arrived for the next turn of the main thread. */
  #arrived: (() => void)[] = [];
  #turnIsDue = false;
  /** Of each plant that is in no batch yet, what happens when it is durable. */
  #queue: (() => void)[] = [];
  #lastBatchPlants = 0;
  #batchesInFlight = 0;
  #batchesMade = 0;
  #plantsInBatches = 0;
  readonly #answers: { atUs: number; latencyUs: number }[] = [];

  constructor(costs: Costs, load: Load) {
    this.#costs = costs;
    this.#load = load;
    this.#clock = new Clock(costs.cores);
    this.#client = new Thread(this.#clock, costs.wakeDelayUs, costs.clientWakeUs);
    this.#main = new Thread(this.#clock, costs.wakeDelayUs, costs.mainWakeUs);
    this.#writer = new Thread(this.#clock, costs.wakeDelayUs, costs.writerWakeUs);
  }

  run(): Prediction {
    if ('connections' in this.#load) for (let n = 0; n < this.#load.connections; n++) this.#sendAndRepeat();
    else this.#sendAtIntervals(1e6 / this.#load.ratePerSecond);
    this.#clock.runUntil(() => this.#answers.length >= WARM_UP_REQUESTS + COUNTED_REQUESTS);
    const counted = this.#answers.slice(WARM_UP_REQUESTS);
    const latenciesUs = counted.map(({ latencyUs }) => latencyUs);
    const tookUs = counted.at(-1)!.atUs - this.#answers[WARM_UP_REQUESTS - 1]!.atUs;
    const ratePerSecond = (counted.length / tookUs) * 1e6;
    if ('ratePerSecond' in this.#load && ratePerSecond < this.#load.ratePerSecond * HELD_SHARE) {
      throw new RangeError(
        `the service holds only ${Math.round(ratePerSecond)} requests a second of this load`,
      );
    }
    return {
      ratePerSecond,
      p50Us: quantile(latenciesUs, 0.5),
      p99Us: quantile(latenciesUs, 0.99),
      batchPlants: this.#plantsInBatches / this.#batchesMade,
    };
  }

  #sendAndRepeat(): void {
    this.#client.work(this.#costs.clientRequestUs / 2, () => {
      this.#answerTo(this.#clock.nowUs, () => this.#sendAndRepeat());
    });
  }

  #sendAtIntervals(intervalUs: number): void {
    const dueUs = this.#clock.nowUs;
    this.#client.work(this.#costs.clientRequestUs / 2, () => this.#answerTo(dueUs));
    this.#clock.after(intervalUs, () => this.#sendAtIntervals(intervalUs));
  }

  /** Follows a request that was sent. Half of its CPU comes before its plant is queued, and half before its answer. */
  #answerTo(sinceUs: number, then?: () => void): void {
    const { mainRequestUs, clientRequestUs } = this.#costs;
    const answerRead = (): void => {
      this.#answers.push({ atUs: this.#clock.nowUs, latencyUs: this.#clock.nowUs - sinceUs });
      then?.();
    };
    const durable = (): void => {
      this.#main.work(mainRequestUs / 2, () => this.#client.work(clientRequestUs / 2, answerRead));
    };
    this.#arrive(() => this.#main.work(mainRequestUs / 2, () => this.#queue.push(durable)));
  }

  /** Wakes the main thread; its turn takes all that has arrived until it runs. */
  #arrive(begin: () => void): void {
    this.#arrived.push(begin);
    if (this.#turnIsDue) return;
    this.#turnIsDue = true;
    this.#main.work(0, () => {
      const arrived = this.#arrived;
      this.#arrived = [];
      this.#turnIsDue = false;
      for (const begin of arrived) begin();
      this.#main.work(0, () => this.#dispatch());
    });
  }

  #dispatch(): void {
    while (this.#batchIsDue) {
      const batch = this.#queue.splice(0, BATCH_PLANTS_MAX);
      this.#lastBatchPlants = batch.length;
      this.#batchesInFlight++;
      this.#batchesMade++;
      this.#plantsInBatches += batch.length;
      this.#commit(batch);
    }
  }

  get #batchIsDue(): boolean {
    if (this.#batchesInFlight === 0) return this.#queue.length > 0;
    return this.#batchesInFlight < COMMITS_IN_FLIGHT_MAX && this.#queue.length >= this.#lastBatchPlants;
  }

  #commit(batch: (() => void)[]): void {
    const { writerBatchUs, writerRowUs, flushUs, flushRowUs, mainBatchUs } = this.#costs;
    this.#writer.work(writerBatchUs + writerRowUs * batch.length);
    this.#writer.sleep(flushUs + flushRowUs * batch.length, () => {
      this.#arrive(() => {
        this.#batchesInFlight--;
        this.#dispatch();
        this.#main.work(mainBatchUs);
        for (const durable of batch) durable();
      });
    });
  }
}

/** Simulated time, and the cores that the running threads share. */
class Clock {
  nowUs = 0;
  readonly #cores: number;
  readonly #timers: { atUs: number; then: () => void }[] = [];
  readonly #running: { remainingUs: number; then: () => void }[] = [];

  constructor(cores: number) {
    this.#cores = cores;
  }

  after(delayUs: number, then: () => void): void {
    this.#timers.push({ atUs: this.nowUs + delayUs, then });
  }

  onCore(cpuUs: number, then: () => void): void {
    this.#running.push({ remainingUs: cpuUs, then });
  }

  /** Goes from event to event. There are a few at a time, so the next one is found by looking at each. */
  runUntil(isDone: () => boolean): void {
    while (!isDone()) {
      const speed = Math.min(1, this.#cores / this.#running.length);
      let stepUs = Number.POSITIVE_INFINITY;
      for (const { remainingUs } of this.#running) stepUs = Math.min(stepUs, remainingUs / speed);
      for (const { atUs } of this.#timers) stepUs = Math.min(stepUs, atUs - this.nowUs);
      this.nowUs += stepUs;
      for (const each of this.#running) each.remainingUs -= stepUs * speed;
      for (const { then } of this.#takeEnded()) then();
    }
  }

  #takeEnded(): { then: () => void }[] {
    const ended = [];
    for (let index = this.#timers.length - 1; index >= 0; index--) {
      if (this.#timers[index]!.atUs <= this.nowUs + ROUNDING_US) ended.push(...this.#timers.splice(index, 1));
    }
    for (let index = this.#running.length - 1; index >= 0; index--) {
      if (this.#running[index]!.remainingUs <= ROUNDING_US) ended.push(...this.#running.splice(index, 1));
    }
    return ended;
  }
}

/** Does what it is given in order, and falls asleep when nothing is left. */
class Thread {
  readonly #clock: Clock;
  readonly #wakeDelayUs: number;
  readonly #wakeUs: number;
  readonly #steps: { us: number; onCore: boolean; then: () => void }[] = [];
  #isAwake = false;

  constructor(clock: Clock, wakeDelayUs: number, wakeUs: number) {
    this.#clock = clock;
    this.#wakeDelayUs = wakeDelayUs;
    this.#wakeUs = wakeUs;
  }

  work(cpuUs: number, then: () => void = () => {}): void {
    this.#add({ us: cpuUs, onCore: true, then });
  }

  sleep(us: number, then: () => void): void {
    this.#add({ us, onCore: false, then });
  }

  #add(step: { us: number; onCore: boolean; then: () => void }): void {
    this.#steps.push(step);
    if (this.#isAwake) return;
    this.#isAwake = true;
    this.#clock.after(this.#wakeDelayUs, () => this.#clock.onCore(this.#wakeUs, () => this.#next()));
  }

  #next(): void {
    const step = this.#steps.shift();
    if (step === undefined) {
      this.#isAwake = false;
      return;
    }
    const ended = (): void => {
      step.then();
      this.#next();
    };
    if (step.onCore) this.#clock.onCore(step.us, ended);
    else this.#clock.after(step.us, ended);
  }
}
