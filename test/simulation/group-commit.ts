import assert from 'node:assert/strict';
import type { Clock } from '../../src/core/clock.ts';
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
  /** The result that its caller must have by now; undefined while it waits. */
  due?: WriteResult | NotConfirmed;
  result?: WriteResult | NotConfirmed;
}

interface Batch {
  plants: Plant[];
  ended: PromiseWithResolvers<WriteResult[]>;
}

/** Callers and an engine. After every step each caller must have the expected result, and no other. */
class Simulation {
  readonly #scheduler: Scheduler;
  readonly #happened: Happened;
  readonly #groupCommit: GroupCommit;
  readonly #load: Load;
  readonly #failingPercent: number;
  readonly #commitsInFlightMax: number;
  readonly #isSequential: boolean;
  readonly #ids: number;
  #arrived = 0;
  /** Plants whose callers have no result yet. */
  #waiting: Plant[] = [];
  #queue: Plant[] = [];
  #queuedTextLength = 0;
  readonly #inFlight: Batch[] = [];
  /** A plant with more plants ahead would wait too long, at the rate of the last batches. */
  #aheadMax = Number.POSITIVE_INFINITY;
  #lastBatchPlants = 0;
  /** Plants in a row that arrived while no other was in flight. */
  #alonePlants = 0;
  /**
   * What arrives at this moment: plants that wait for the end of this iteration of the event loop,
   * or one that is alone.
   */
  #arriving: 'nothing' | 'several' | 'alone' | 'awaited' = 'nothing';
  #dispatchesDue = 0;
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
        commit: writes => this.#checkedCommit(writes),
        awaitCommit: () => {
          assert.equal(this.#arriving, 'alone', 'a commit is awaited only for a plant that is alone');
          assert.equal(this.#plantsInFlight, 1, 'a commit is awaited only for a plant that is alone');
          this.#arriving = 'awaited';
        },
      },
      this.#clock(),
    );
  }

  /** A clock that knows whether the next iteration of the event loop makes batches. */
  #clock(): Clock {
    const scheduler = this.#scheduler;
    return {
      now: () => scheduler.now(),
      wallNow: () => scheduler.wallNow(),
      setTimer: (callback, delayMs) => scheduler.setTimer(callback, delayMs),
      nextIteration: callback => {
        this.#dispatchesDue++;
        scheduler.nextIteration(() => {
          this.#dispatchesDue--;
          callback();
        });
      },
    };
  }

  async run(): Promise<number> {
    const scheduler = this.#scheduler;
    void scheduler.start(() => this.#arriveAll());
    await scheduler.runUntil(Number.POSITIVE_INFINITY, () => this.#check());
    assert.ok(this.#isClosed && this.#waiting.length === 0, 'something waits for ever');
    this.#arrive(1, 1);
    await scheduler.runUntil(Number.POSITIVE_INFINITY, () => this.#check());
    assert.equal(this.#waiting.length, 0, 'a plant waits that arrived after the end');
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
    const text = 'x'.repeat(textLength);
    for (let each = 0; each < plants; each++) {
      const index = this.#arrived++;
      const ahead = this.#plantsInFlight;
      const id = BigInt(index % this.#ids);
      const plant: Plant = { index, id, textLength, queuedAt: this.#scheduler.now(), ahead };
      const error = this.#errorDue(plant);
      if (error === undefined) {
        this.#queue.push(plant);
        this.#queuedTextLength += textLength;
      } else plant.due = { kind: 'notConfirmed', error };
      this.#waiting.push(plant);
      if (error === undefined) this.#alonePlants = ahead === 0 ? this.#alonePlants + 1 : 0;
      const isAlone = error === undefined && this.#alonePlants > ALONE_PLANTS_MIN;
      if (isAlone) count(this.#happened, 'a client sends one plant at a time');
      this.#arriving = isAlone ? 'alone' : 'several';
      const write = { plant: { id, name: text }, recordedBy: index, ifRevision: conditionOf(index) };
      void this.#groupCommit.write(write).then(result => {
        assert.equal(plant.result, undefined);
        plant.result = result;
      });
      if (isAlone) assert.equal(this.#arriving, 'awaited', 'the commit of such a plant is awaited');
      this.#arriving = 'nothing';
      if (isAlone) assert.ok(this.#inFlight.at(-1)?.plants[0] === plant, 'such a plant waits');
    }
  }

  /** Plants that are queued or in a batch. */
  get #plantsInFlight(): number {
    return this.#inFlight.reduce((sum, { plants }) => sum + plants.length, this.#queue.length);
  }

  #errorDue({ ahead, textLength }: Plant): NotConfirmed['error'] | undefined {
    if (this.#isClosing) {
      count(this.#happened, 'shutting down');
      return 'shuttingDown';
    }
    const isFirst = this.#queue.length === 0;
    const isTextLong = this.#queuedTextLength + textLength > QUEUE_TEXT_LENGTH_MAX;
    if (this.#queue.length >= QUEUE_PLANTS_MAX) count(this.#happened, 'busy for the number of plants');
    else if (!isFirst && isTextLong) count(this.#happened, 'busy for the length of text');
    else if (ahead >= IN_FLIGHT_PLANTS_MIN && ahead >= this.#aheadMax)
      count(this.#happened, 'busy for the rate');
    else return undefined;
    return 'busy';
  }

  /** Group commit does not expect that a commit throws, so a failed check ends the run here. */
  async #checkedCommit(writes: readonly PlantWrite[]): Promise<WriteResult[]> {
    let results: Promise<WriteResult[]> | undefined;
    await this.#scheduler.start(async () => {
      results = this.#commit(writes);
    });
    return await (results ?? new Promise(() => {}));
  }

  #commit(writes: readonly PlantWrite[]): Promise<WriteResult[]> {
    assert.ok(this.#arriving !== 'several', 'plants of the same iteration share a batch');
    assert.ok(this.#isDue(), 'a batch that is not due');
    if (this.#inFlight.length > 0) count(this.#happened, 'a batch beside another');
    const takeable = this.#takeable();
    if (takeable.length < this.#queue.length) count(this.#happened, 'a plant is held back');
    const plants = this.#takeQueued(takeable.slice(0, writes.length));
    const next = takeable[writes.length];
    const batch = { plants, ended: Promise.withResolvers<WriteResult[]>() };
    this.#inFlight.push(batch);
    assert.deepEqual(
      writes.map(({ recordedBy, plant, ifRevision }) => [recordedBy, plant.id, ifRevision]),
      plants.map(({ index, id }) => [index, id, conditionOf(index)]),
      'in the order of arrival',
    );
    const textLength = textLengthOf(plants);
    assert.ok(plants.length > 0 && plants.length <= BATCH_PLANTS_MAX && textLength <= BATCH_TEXT_LENGTH_MAX);
    const isFull = plants.length === BATCH_PLANTS_MAX;
    const fits = next !== undefined && textLength + next.textLength <= BATCH_TEXT_LENGTH_MAX;
    assert.ok(isFull || !fits, 'a batch leaves what fits');
    assert.ok(this.#inFlight.length <= this.#commitsInFlightMax);
    this.#lastBatchPlants = plants.length;
    this.#scheduler.later(0, this.#load.commitMsMax, () => this.#endBatch(batch));
    return batch.ended.promise;
  }

  /** The queued plants whose ids are in no batch in flight. */
  #free(): Plant[] {
    if (this.#isSequential || this.#inFlight.length === 0) return this.#queue;
    const ids = new Set(this.#inFlight.flatMap(({ plants }) => plants.map(({ id }) => id)));
    return this.#queue.filter(({ id }) => !ids.has(id));
  }

  /** A batch of an engine that is not sequential may have only a few plants of an id. */
  #takeable(): Plant[] {
    if (this.#isSequential) return this.#queue;
    const repeats = new Map<bigint, number>();
    return this.#free().filter(({ id }) => {
      const times = (repeats.get(id) ?? 0) + 1;
      repeats.set(id, times);
      return times <= BATCH_REPEATS_MAX;
    });
  }

  /** No small batch beside another one. */
  #isDue(): boolean {
    const free = this.#free().length;
    return free > 0 && (this.#inFlight.length === 0 || free >= this.#lastBatchPlants);
  }

  #takeQueued(plants: Plant[]): Plant[] {
    const taken = new Set(plants);
    this.#queue = this.#queue.filter(each => !taken.has(each));
    this.#queuedTextLength -= textLengthOf(plants);
    return plants;
  }

  #endBatch(batch: Batch): void {
    const { plants, ended } = batch;
    const nowMs = this.#scheduler.now();
    const place = this.#inFlight.indexOf(batch);
    if (place > 0) count(this.#happened, 'a batch ends out of order');
    this.#inFlight.splice(place, 1);
    if (this.#scheduler.happens(this.#failingPercent)) {
      count(this.#happened, 'a batch fails');
      const long = this.#queue.filter(({ queuedAt }) => nowMs - queuedAt >= FAILING_QUEUE_TIMEOUT_MS);
      if (long.length > 0) count(this.#happened, 'a queued plant fails, too');
      for (const plant of [...plants, ...this.#takeQueued(long)])
        plant.due = { kind: 'notConfirmed', error: 'storeUnavailable' };
      ended.reject(new StoreUnavailable('the simulated engine fails'));
    } else {
      const last = plants.at(-1)!;
      if (last.ahead >= IN_FLIGHT_PLANTS_MIN / 2)
        this.#aheadMax = (last.ahead * QUEUE_TIME_MAX_MS) / (nowMs - last.queuedAt);
      const results = plants.map(resultOf);
      for (const [index, plant] of plants.entries()) plant.due = results[index]!;
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
    for (const { index, result, due } of this.#waiting) {
      const isCorrect = result === due || JSON.stringify(result) === JSON.stringify(due);
      assert.ok(isCorrect, `plant ${index} gets ${JSON.stringify(result)} instead of ${JSON.stringify(due)}`);
    }
    this.#waiting = this.#waiting.filter(({ due }) => due === undefined);
    const hasRoom = this.#inFlight.length < this.#commitsInFlightMax;
    assert.ok(!hasRoom || this.#dispatchesDue > 0 || !this.#isDue(), 'a batch waits that is due');
    assert.equal(this.#groupCommit.statistics.plantsInFlight, this.#waiting.length);
    assert.equal(this.#isClosed, this.#isClosing && this.#waiting.length === 0);
  }
}

function loadOf(seed: number, scheduler: Scheduler): Load {
  // Only slow batches let plants be rejected for the rate.
  const slow = { pauseMsMax: 1_000, commitMsMax: 3_000, textLengths: [0, 1] };
  if (seed % SLOW_RUN_INTERVAL === 0) return { ...slow, arrivals: 4, burstPlants: 2 * QUEUE_PLANTS_MAX };
  if (seed % 40 === 20) return { ...slow, arrivals: 12, burstPlants: 2 * IN_FLIGHT_PLANTS_MIN };
  const [pauseMsMax, commitMsMax] = [scheduler.pick(0, 5, 100, 1_000), scheduler.pick(0, 5, 100, 3_000)];
  if (seed % SLOW_RUN_INTERVAL === SLOW_RUN_INTERVAL / 2)
    return { pauseMsMax: 5, commitMsMax: 1_000, arrivals: 24, burstPlants: 1, textLengths: LONG_TEXTS };
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

function textLengthOf(plants: readonly Plant[]): number {
  return plants.reduce((sum, { textLength }) => sum + textLength, 0);
}

export const groupCommit: Part = {
  name: 'group-commit',
  simulate: (seed, happened) => new Simulation(seed, happened).run(),
};
