import assert from 'node:assert/strict';
import { BATCH_PLANTS_MAX, BATCH_TEXT_LENGTH_MAX } from '../../src/core/commit/batch-size.ts';
import {
  ALONE_PLANTS_MIN,
  FAILING_QUEUE_TIMEOUT_MS,
  GroupCommit,
  QUEUE_PLANTS_MAX,
  QUEUE_TEXT_LENGTH_MAX,
} from '../../src/core/commit/group-commit.ts';
import { BATCH_REPEATS_MAX } from '../../src/core/commit/ids-in-flight.ts';
import { IN_FLIGHT_PLANTS_MIN, QUEUE_TIME_MAX_MS } from '../../src/core/commit/in-flight-limit.ts';
import type { NotConfirmed, PlantWrite, WriteResult } from '../../src/core/commit/plant-commits.ts';
import { StoreUnavailable } from '../../src/core/commit/store-errors.ts';
import { count, type Happened, type Part } from './part.ts';
import { Scheduler } from './scheduler.ts';

/** One run in so many fills the queue, and another has long texts: they take as long as many others. */
const SLOW_RUN_INTERVAL = 500;
/** Most are as long as possible, so that the queue fills. */
const LONG_TEXTS = [
  1,
  BATCH_TEXT_LENGTH_MAX / 2,
  BATCH_TEXT_LENGTH_MAX / 2 + 1,
  ...Array<number>(3).fill(BATCH_TEXT_LENGTH_MAX),
];

/** What the callers of a run send. */
interface Load {
  /** How often plants arrive. */
  arrivals: number;
  /** Maximum of plants that arrive at the same time. So many arrive first. */
  burstPlants: number;
  textLengths: readonly number[];
  /** Longest time between two arrivals. */
  pauseMsMax: number;
  /** Longest time of a commit. */
  commitMsMax: number;
  /** Whether each plant is sent after the result of the one before it. */
  isOneAtATime?: boolean;
}

interface Plant {
  /** Position in the order of arrival; its token and revision are derived from it. */
  index: number;
  id: bigint;
  textLength: number;
  queuedAt: number;
  /** Plants that were queued or in a batch when it arrived. */
  ahead: number;
}

type Result = [index: number, WriteResult | NotConfirmed];

/** Callers and an engine, and what must be true of each batch and each result. */
class Simulation {
  readonly #scheduler: Scheduler;
  readonly #happened: Happened;
  readonly #groupCommit: GroupCommit;
  readonly #load: Load;
  readonly #failingPercent: number;
  readonly #commitsInFlightMax: number;
  readonly #isSequential: boolean;
  readonly #ids: number;
  readonly #plants: Plant[] = [];
  readonly #queued = new Set<Plant>();
  #queuedTextLength = 0;
  /** The batches in flight, in their order. */
  readonly #batches: Plant[][] = [];
  #lastBatchPlants = 0;
  /** The last plant of each id that was in a batch, or of all ids if the engine is sequential. */
  readonly #lastOfId = new Map<bigint, number>();
  /** The results of this step that the callers have, and those that they must have. */
  #results: Result[] = [];
  #due: Result[] = [];
  /** Plants per ms, as the last batch shows it that was behind many plants. */
  #rate = Number.POSITIVE_INFINITY;
  /** Plants in a row that arrived while no other was in flight. */
  #alonePlants = 0;
  /** What is in `write`; its plants wait for the end of this iteration, unless one is alone. */
  #writing: 'nothing' | 'alone' | 'several' = 'nothing';
  #awaitedCommits = 0;
  #isClosing = false;
  #isClosed = false;

  constructor(seed: number, happened: Happened) {
    const scheduler = new Scheduler(seed);
    this.#scheduler = scheduler;
    this.#happened = happened;
    this.#load = loadOf(seed, scheduler);
    this.#failingPercent = scheduler.pick(0, 0, 10, 50, 100);
    this.#commitsInFlightMax = scheduler.pick(1, 2, 3, 4);
    this.#isSequential = scheduler.pick(true, false, false);
    this.#ids = scheduler.pick(Number.MAX_SAFE_INTEGER, 5);
    this.#groupCommit = new GroupCommit(
      {
        commitsInFlightMax: this.#commitsInFlightMax,
        isSequential: this.#isSequential,
        commit: writes => this.#commit(writes),
        awaitCommit: () => this.#awaitedCommits++,
      },
      scheduler,
    );
  }

  async run(): Promise<number> {
    const scheduler = this.#scheduler;
    void scheduler.start(() => this.#arriveAll());
    await scheduler.runUntil(Number.POSITIVE_INFINITY, () => this.#check());
    assert.ok(this.#isClosed, 'something waits for ever');
    this.#arrive(1, 1);
    await scheduler.runUntil(Number.POSITIVE_INFINITY, () => this.#check());
    return scheduler.steps;
  }

  async #arriveAll(): Promise<void> {
    const scheduler = this.#scheduler;
    const { arrivals, burstPlants, textLengths, pauseMsMax, isOneAtATime } = this.#load;
    const closeAt = scheduler.pick(arrivals / 2, arrivals);
    for (let arrival = 0; arrival < arrivals; arrival++) {
      if (arrival === closeAt) this.#close();
      const plants = arrival === 0 ? burstPlants : 1 + scheduler.random(burstPlants);
      this.#arrive(plants, scheduler.pick(...textLengths));
      await scheduler.pause(0, pauseMsMax);
      while (isOneAtATime && this.#plantsInFlight > 0) await scheduler.pause(1, 10);
    }
    this.#close();
  }

  #arrive(plants: number, textLength: number): void {
    const name = 'x'.repeat(textLength);
    for (let each = 0; each < plants; each++) {
      const index = this.#plants.length;
      const ahead = this.#plantsInFlight;
      const id = BigInt(index % this.#ids);
      const plant: Plant = { index, id, textLength, queuedAt: this.#scheduler.now(), ahead };
      this.#plants.push(plant);
      const error = this.#rejectionOf(plant);
      if (error === undefined) {
        this.#queued.add(plant);
        this.#queuedTextLength += textLength;
        this.#alonePlants = ahead === 0 ? this.#alonePlants + 1 : 0;
      } else this.#due.push([index, { kind: 'notConfirmed', error }]);
      const isAlone = error === undefined && this.#alonePlants > ALONE_PLANTS_MIN;
      if (isAlone) count(this.#happened, 'a client sends one plant at a time');
      this.#writing = isAlone ? 'alone' : 'several';
      this.#awaitedCommits = 0;
      const write = { plant: { id, name }, recordedBy: index, ifRevision: conditionOf(index) };
      void this.#groupCommit.write(write).then(result => this.#results.push([index, result]));
      this.#writing = 'nothing';
      assert.equal(this.#awaitedCommits, isAlone ? 1 : 0, 'only the commit of a plant alone is awaited');
      assert.ok(!isAlone || !this.#queued.has(plant), 'such a plant waits');
    }
  }

  #rejectionOf({ ahead, textLength }: Plant): NotConfirmed['error'] | undefined {
    const { size } = this.#queued;
    const isTextLong = size > 0 && this.#queuedTextLength + textLength > QUEUE_TEXT_LENGTH_MAX;
    const isTooLate = ahead >= IN_FLIGHT_PLANTS_MIN && ahead / this.#rate >= QUEUE_TIME_MAX_MS;
    if (this.#isClosing) count(this.#happened, 'shutting down');
    else if (size >= QUEUE_PLANTS_MAX) count(this.#happened, 'busy for the number of plants');
    else if (isTextLong) count(this.#happened, 'busy for the length of text');
    else if (isTooLate) count(this.#happened, 'busy for the rate');
    else return undefined;
    return this.#isClosing ? 'shuttingDown' : 'busy';
  }

  #unqueue(plant: Plant): void {
    assert.ok(this.#queued.delete(plant), `plant ${plant.index} is in a second batch, or has a result`);
    this.#queuedTextLength -= plant.textLength;
  }

  /** Plants that are queued or in a batch. */
  get #plantsInFlight(): number {
    return this.#batches.reduce((sum, plants) => sum + plants.length, this.#queued.size);
  }

  /** Group commit does not expect that a commit throws, so a failed check ends the run here. */
  #commit(writes: readonly PlantWrite[]): Promise<WriteResult[]> {
    const ended = Promise.withResolvers<WriteResult[]>();
    void this.#scheduler.start(async () => {
      const plants = writes.map(({ recordedBy }) => this.#plants[recordedBy]!);
      for (const { recordedBy, plant, ifRevision } of writes)
        assert.deepEqual([plant.id, ifRevision], [this.#plants[recordedBy]!.id, conditionOf(recordedBy)]);
      this.#checkBatch(plants);
      this.#batches.push(plants);
      this.#lastBatchPlants = plants.length;
      this.#scheduler.later(0, this.#load.commitMsMax, () => this.#endBatch(plants, ended));
    });
    return ended.promise;
  }

  #checkBatch(plants: Plant[]): void {
    assert.notEqual(this.#writing, 'several', 'plants of the same iteration share a batch');
    assert.ok(this.#batches.length < this.#commitsInFlightMax, 'too many batches');
    const free = this.#free();
    if (this.#batches.length > 0) {
      count(this.#happened, 'a batch beside another');
      assert.ok(free.size >= this.#lastBatchPlants, 'a small batch beside another');
    }
    if (free.size < this.#queued.size) count(this.#happened, 'a plant is held back');
    for (const plant of plants) {
      const { id, index } = plant;
      this.#unqueue(plant);
      assert.ok(free.delete(plant), `id ${id} is in two batches in flight`);
      const register = this.#isSequential ? 0n : id;
      assert.ok(index > (this.#lastOfId.get(register) ?? -1), `plant ${index} is overtaken`);
      this.#lastOfId.set(register, index);
    }
    this.#checkSize(plants, free);
  }

  /** @param left plants that stay queued, although no batch before this one has their ids */
  #checkSize(plants: readonly Plant[], left: ReadonlySet<Plant>): void {
    const textLength = plants.reduce((sum, each) => sum + each.textLength, 0);
    assert.ok(plants.length > 0 && plants.length <= BATCH_PLANTS_MAX && textLength <= BATCH_TEXT_LENGTH_MAX);
    const repeats = Map.groupBy(plants, ({ id }) => id);
    const repeatsMax = this.#isSequential ? Number.POSITIVE_INFINITY : BATCH_REPEATS_MAX;
    for (const [id, { length }] of repeats)
      assert.ok(length <= repeatsMax, `id ${id} is too often in a batch`);
    const next = left.values().find(({ id }) => (repeats.get(id)?.length ?? 0) < repeatsMax);
    if (next === undefined) return;
    const isFull = plants.length === BATCH_PLANTS_MAX || textLength + next.textLength > BATCH_TEXT_LENGTH_MAX;
    assert.ok(isFull && next.index > plants.at(-1)!.index, `a batch leaves plant ${next.index}, which fits`);
  }

  /** The queued plants that may be in another batch now. */
  #free(): Set<Plant> {
    if (this.#isSequential) return new Set(this.#queued);
    const ids = new Set(this.#batches.flat().map(({ id }) => id));
    return new Set(this.#queued.values().filter(({ id }) => !ids.has(id)));
  }

  #endBatch(plants: Plant[], ended: PromiseWithResolvers<WriteResult[]>): void {
    const nowMs = this.#scheduler.now();
    const place = this.#batches.indexOf(plants);
    if (place > 0) count(this.#happened, 'a batch ends out of order');
    this.#batches.splice(place, 1);
    if (this.#scheduler.happens(this.#failingPercent)) {
      count(this.#happened, 'a batch fails');
      const long = [...this.#queued].filter(({ queuedAt }) => nowMs - queuedAt >= FAILING_QUEUE_TIMEOUT_MS);
      if (long.length > 0) count(this.#happened, 'a queued plant fails, too');
      for (const plant of long) this.#unqueue(plant);
      for (const { index } of [...plants, ...long])
        this.#due.push([index, { kind: 'notConfirmed', error: 'storeUnavailable' }]);
      ended.reject(new StoreUnavailable('the simulated engine fails'));
    } else {
      const { ahead, queuedAt } = plants.at(-1)!;
      if (ahead >= IN_FLIGHT_PLANTS_MIN / 2) this.#rate = ahead / (nowMs - queuedAt);
      const results = plants.map(resultOf);
      for (const [index, plant] of plants.entries()) this.#due.push([plant.index, results[index]!]);
      ended.resolve(results);
    }
  }

  #close(): void {
    this.#isClosing = true;
    void this.#groupCommit.close().then(() => {
      this.#isClosed = true;
    });
  }

  /** Checks the state after a step and its consequences. */
  #check(): void {
    assert.deepEqual(this.#results, this.#due, 'each caller has the result of its own plant');
    this.#results = [];
    this.#due = [];
    if (this.#batches.length < this.#commitsInFlightMax) {
      // Those that have just arrived wait for the end of the iteration.
      const now = this.#scheduler.now();
      const free = this.#free()
        .values()
        .filter(({ queuedAt }) => queuedAt < now);
      const plantsMin = this.#batches.length === 0 ? 1 : this.#lastBatchPlants;
      assert.ok([...free].length < plantsMin, 'a batch waits that is due');
    }
    assert.equal(this.#groupCommit.statistics.plantsInFlight, this.#plantsInFlight);
    assert.equal(this.#isClosed, this.#isClosing && this.#plantsInFlight === 0);
  }
}

function loadOf(seed: number, scheduler: Scheduler): Load {
  // Only slow batches let plants be rejected for the rate.
  const slow = { pauseMsMax: 1_000, commitMsMax: 3_000, textLengths: [0, 1] };
  if (seed % SLOW_RUN_INTERVAL === 0) return { ...slow, arrivals: 4, burstPlants: 2 * QUEUE_PLANTS_MAX };
  if (seed % 40 === 20)
    return { ...slow, arrivals: 12, burstPlants: scheduler.pick(0.75, 2) * IN_FLIGHT_PLANTS_MIN };
  const [pauseMsMax, commitMsMax] = [scheduler.pick(0, 5, 100, 1_000), scheduler.pick(0, 5, 100, 3_000)];
  if (seed % SLOW_RUN_INTERVAL === SLOW_RUN_INTERVAL / 2)
    return {
      pauseMsMax: scheduler.pick(5, 500),
      commitMsMax: 1_000,
      arrivals: 30,
      burstPlants: 1,
      textLengths: LONG_TEXTS,
    };
  const burstPlants = scheduler.pick(1, 3, 20);
  const isOneAtATime = burstPlants === 1 && scheduler.happens(50);
  return { pauseMsMax, commitMsMax, arrivals: 30, burstPlants, textLengths: [0, 10], isOneAtATime };
}

/** Half of the plants have a condition, each another one. */
function conditionOf(index: number): number | undefined {
  return index % 2 === 0 ? undefined : index;
}

/** Each plant gets another result, except the plants that the engine rejects. */
function resultOf({ index }: Plant): WriteResult {
  if (index % 7 === 5) return { kind: 'rejected', error: 'plantChanged', revision: index };
  if (index % 7 === 6) return { kind: 'rejected', error: 'idTaken' };
  return { kind: 'confirmed', outcome: 'created', revision: index + 1 };
}

export const groupCommit: Part = {
  name: 'group-commit',
  simulate: (seed, happened) => new Simulation(seed, happened).run(),
};
