import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextIteration } from 'node:timers/promises';
import { BATCH_PLANTS_MAX, BATCH_TEXT_LENGTH_MAX } from '../../src/store/batch-size.ts';
import {
  BATCH_REPEATS_MAX,
  FAILING_QUEUE_TIMEOUT_MS,
  GroupCommit,
  IN_FLIGHT_PLANTS_MIN,
  QUEUE_PLANTS_MAX,
  QUEUE_TEXT_LENGTH_MAX,
  QUEUE_TIME_MAX_MS,
} from '../../src/store/group-commit.ts';
import {
  type NotConfirmed,
  type PlantWrite,
  StoreUnavailable,
  type WriteResult,
} from '../../src/store/plant-store.ts';
import { SEED, seededRandom } from '../harness/seeded-random.ts';

const RUNS = 500;
const LONG_TEXTS = [1, 1_000_000, BATCH_TEXT_LENGTH_MAX / 2 + 1, BATCH_TEXT_LENGTH_MAX];

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

/** Counts the events of all runs. An event that never happened was not checked. */
const happened = {
  batchBesideAnother: 0,
  batchOutOfOrder: 0,
  batchFailed: 0,
  heldBack: 0,
  busyForNumber: 0,
  busyForText: 0,
  busyForRate: 0,
  settledFromQueue: 0,
  shuttingDown: 0,
};

/**
 * Simulates callers, an engine and a clock from a seed, without real time. After every step each
 * caller must have the expected result, and no other.
 */
class Simulation {
  readonly #random: (below: number) => number;
  readonly #groupCommit: GroupCommit;
  readonly #commitsInFlightMax: number;
  readonly #isSequential: boolean;
  readonly #ids: number;
  #nowMs = 0;
  #arrived = 0;
  /** Plants whose callers have no result yet. */
  #waiting: Plant[] = [];
  #queue: Plant[] = [];
  #queuedTextLength = 0;
  readonly #inFlight: Batch[] = [];
  /** A plant with more plants ahead would wait too long, at the rate of the last batches. */
  #aheadMax = Number.POSITIVE_INFINITY;
  #lastBatchPlants = 0;
  #inWrite = false;
  #isClosing = false;
  #isClosed = false;

  constructor(seed: number) {
    this.#random = seededRandom(seed);
    this.#commitsInFlightMax = this.#pick(1, 2, 3, 4);
    this.#isSequential = this.#pick(true, false, false);
    this.#ids = this.#pick(Number.MAX_SAFE_INTEGER, 5);
    this.#groupCommit = new GroupCommit(
      {
        commitsInFlightMax: this.#commitsInFlightMax,
        isSequential: this.#isSequential,
        commit: writes => this.#commit(writes),
      },
      () => this.#nowMs,
    );
  }

  /** @param burstPlants maximum of plants that arrive at the same time; so many arrive first */
  async run(steps: number, burstPlants: number): Promise<void> {
    const textLengths = burstPlants > 20 ? [0, 1] : this.#pickTextLengths();
    // Only slow batches let plants be rejected for the rate.
    const pauseMs = burstPlants > 20 ? 1_000 : this.#pick(0, 5, 100, 1_000);
    const failing = this.#pick(0, 0, 10, 50, 100);
    const [arriving, closeAt] = [this.#pick(30, 50, 80), this.#pick(steps / 2, steps)];
    for (let step = 0; step < steps; step++) {
      this.#nowMs += this.#random(pauseMs + 1);
      if (step === closeAt) this.#close();
      if (this.#inFlight.length > 0 && this.#random(100) >= arriving)
        this.#endBatch(this.#random(100) < failing);
      else this.#arrive(step === 0 ? burstPlants : 1 + this.#random(burstPlants), this.#pick(...textLengths));
      await this.#check();
    }
    this.#close();
    for (;;) {
      await this.#check();
      if (this.#inFlight.length === 0) break;
      this.#endBatch(false);
    }
    this.#arrive(1, 1);
    await this.#check();
    assert.ok(this.#isClosed && this.#waiting.length === 0);
  }

  /** Long texts are rare, because nearly all the time goes into their checksums. */
  #pickTextLengths(): number[] {
    return this.#random(20) === 0 ? LONG_TEXTS : this.#pick([1, 10], [0, 4_000]);
  }

  #pick<Value>(...values: Value[]): Value {
    return values[this.#random(values.length)]!;
  }

  #arrive(count: number, textLength: number): void {
    const text = 'x'.repeat(textLength);
    for (let each = 0; each < count; each++) {
      const index = this.#arrived++;
      const plant: Plant = {
        ...{ index, id: BigInt(index % this.#ids), textLength, queuedAt: this.#nowMs },
        ahead: this.#plantsInFlight,
      };
      const rejected = this.#rejectionDue(plant);
      if (rejected === undefined) {
        this.#queue.push(plant);
        this.#queuedTextLength += textLength;
      } else plant.due = { rejected };
      this.#waiting.push(plant);
      this.#inWrite = true;
      const write = { plant: { id: plant.id, name: text }, contentChecksum: 0n, recordedBy: index };
      void this.#groupCommit.write(write).then(result => {
        plant.result = result;
      });
      this.#inWrite = false;
    }
  }

  /** Plants that are queued or in a batch. */
  get #plantsInFlight(): number {
    return this.#inFlight.reduce((sum, { plants }) => sum + plants.length, this.#queue.length);
  }

  #rejectionDue({ ahead, textLength }: Plant): NotConfirmed['rejected'] | undefined {
    if (this.#isClosing) {
      happened.shuttingDown++;
      return 'shuttingDown';
    }
    const isFirst = this.#queue.length === 0;
    if (this.#queue.length >= QUEUE_PLANTS_MAX) happened.busyForNumber++;
    else if (!isFirst && this.#queuedTextLength + textLength > QUEUE_TEXT_LENGTH_MAX) happened.busyForText++;
    else if (ahead >= IN_FLIGHT_PLANTS_MIN && ahead >= this.#aheadMax) happened.busyForRate++;
    else return undefined;
    return 'busy';
  }

  #commit(writes: readonly PlantWrite[]): Promise<WriteResult[]> {
    assert.ok(!this.#inWrite, 'plants of the same iteration share a batch');
    assert.ok(this.#isDue(), 'a batch that is not due');
    const isBesideAnother = this.#inFlight.length > 0;
    const takeable = this.#takeable();
    if (takeable.length < this.#queue.length) happened.heldBack++;
    const plants = this.#takeQueued(takeable.slice(0, writes.length));
    const next = takeable[writes.length];
    const batch = { plants, ended: Promise.withResolvers<WriteResult[]>() };
    this.#inFlight.push(batch);
    assert.deepEqual(
      writes.map(({ recordedBy, plant }) => [recordedBy, plant.id]),
      plants.map(({ index, id }) => [index, id]),
      'in the order of arrival',
    );
    const textLength = textLengthOf(plants);
    assert.ok(plants.length > 0 && plants.length <= BATCH_PLANTS_MAX && textLength <= BATCH_TEXT_LENGTH_MAX);
    const isFull = plants.length === BATCH_PLANTS_MAX;
    const fits = next !== undefined && textLength + next.textLength <= BATCH_TEXT_LENGTH_MAX;
    assert.ok(isFull || !fits, 'a batch leaves what fits');
    assert.ok(this.#inFlight.length <= this.#commitsInFlightMax);
    this.#lastBatchPlants = plants.length;
    if (isBesideAnother) happened.batchBesideAnother++;
    return batch.ended.promise;
  }

  /** The queued plants whose ids are in no batch in flight. */
  #free(): Plant[] {
    if (this.#isSequential) return this.#queue;
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

  #endBatch(fails: boolean): void {
    const place = this.#random(this.#inFlight.length);
    if (place > 0) happened.batchOutOfOrder++;
    const { plants, ended } = this.#inFlight.splice(place, 1)[0]!;
    if (fails) {
      happened.batchFailed++;
      const long = this.#queue.filter(({ queuedAt }) => this.#nowMs - queuedAt >= FAILING_QUEUE_TIMEOUT_MS);
      happened.settledFromQueue += long.length;
      for (const plant of [...plants, ...this.#takeQueued(long)])
        plant.due = { rejected: 'storeUnavailable' };
      ended.reject(new StoreUnavailable('the simulated engine fails'));
    } else {
      const last = plants.at(-1)!;
      if (last.ahead >= IN_FLIGHT_PLANTS_MIN / 2) {
        this.#aheadMax = (last.ahead * QUEUE_TIME_MAX_MS) / (this.#nowMs - last.queuedAt);
      }
      for (const plant of plants) plant.due = resultOf(plant);
      ended.resolve(plants.map(resultOf));
    }
  }

  #close(): void {
    this.#isClosing = true;
    void this.#groupCommit.close().then(() => {
      this.#isClosed = true;
    });
  }

  /** Checks the state after a step and its consequences. */
  async #check(): Promise<void> {
    await nextIteration();
    for (const { index, result, due } of this.#waiting) {
      const isCorrect = result === due || JSON.stringify(result) === JSON.stringify(due);
      assert.ok(isCorrect, `plant ${index} gets ${JSON.stringify(result)} instead of ${JSON.stringify(due)}`);
    }
    this.#waiting = this.#waiting.filter(({ due }) => due === undefined);
    const room = this.#commitsInFlightMax - this.#inFlight.length;
    assert.ok(!this.#isDue() || room === 0, 'a batch waits that is due');
    assert.equal(this.#groupCommit.statistics.plantsInFlight, this.#waiting.length);
    assert.equal(this.#isClosed, this.#isClosing && this.#waiting.length === 0);
  }
}

/** Each plant gets another result, except the plants that the engine rejects. */
function resultOf({ index }: Plant): WriteResult {
  return index % 7 === 6 ? { rejected: 'idTaken' } : { outcome: 'created', revision: index + 1 };
}

function textLengthOf(plants: readonly Plant[]): number {
  return plants.reduce((sum, { textLength }) => sum + textLength, 0);
}

test(`group commit returns the correct result to each caller in time, with ${RUNS} seeds`, async t => {
  t.diagnostic(`seed ${SEED}; repeat it with PLANT_STORE_TEST_SEED`);
  for (let run = 0; run < RUNS; run++) {
    const simulation = new Simulation(SEED * RUNS + run);
    // Only some runs fill the queue, because they take as long as a hundred others.
    if (run % 250 === 0) await simulation.run(10, 2 * QUEUE_PLANTS_MAX);
    else await simulation.run(60, run % 40 === 20 ? 2 * IN_FLIGHT_PLANTS_MIN : [1, 3, 20][run % 3]!);
  }
  const never = Object.entries(happened).filter(([, count]) => count === 0);
  assert.deepEqual(never, [], 'events that never happened');
});
