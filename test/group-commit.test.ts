import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turnOfTheEventLoop } from 'node:timers/promises';
import fc from 'fast-check';
import {
  BATCH_PLANTS_MAX,
  BATCH_TEXT_LENGTH_MAX,
  FAILING_QUEUE_WAIT_MS,
  OVERLOAD_WAIT_MS,
  QUEUE_PLANTS_MAX,
  QUEUE_TEXT_LENGTH_MAX,
  UNDER_WAY_PLANTS_MIN,
} from '../src/contract/limits.ts';
import { type Clock, GroupCommit } from '../src/store/group-commit.ts';
import type { NotConfirmed, PlantWrite, StorageEngine, WriteResult } from '../src/store/plant-store.ts';

/** Here no plant waits too long for others, however slow the machine is. */
const NO_TIME_PASSES: Clock = { now: () => 0, atEndOfTurn: run => void setImmediate(run) };

/** What is known of one call of `keep`; the id of its plant is its place in the order of arrival. */
interface Kept {
  id: bigint;
  textLength: number;
  result: WriteResult | NotConfirmed | undefined;
}

interface BatchInFlight {
  plants: Kept[];
  answered: PromiseWithResolvers<WriteResult[]>;
}

const FAILURE = new Error('the engine was told to fail');

/**
 * Group commit between a script and an engine that answers, or fails, when the script says so. What must hold is
 * asserted as it happens: every batch when it is made, every answer when it is due.
 */
class Bench {
  readonly #groupCommit: GroupCommit;
  readonly #commitsInFlightMax: number;
  readonly #plants: Kept[] = [];
  /** Taken and in no batch yet, in order of arrival. */
  #queue: Kept[] = [];
  #queueTextLength = 0;
  #lastBatchPlants = 0;
  readonly #batches: BatchInFlight[] = [];
  readonly #told: string[] = [];
  readonly #expectedTold: string[] = [];
  readonly #faults: unknown[] = [];
  #failing = false;
  #inKeep = false;
  #closed: 'no' | 'asked' | 'settled' = 'no';

  constructor(commitsInFlightMax: number) {
    this.#commitsInFlightMax = commitsInFlightMax;
    const engine: Pick<StorageEngine, 'commit' | 'commitsInFlightMax'> = {
      commitsInFlightMax,
      commit: writes => this.#commit(writes),
    };
    this.#groupCommit = new GroupCommit(
      engine as StorageEngine,
      {
        storeFailed: cause => {
          assert.equal(cause, FAILURE);
          this.#told.push('failed');
        },
        storeRecovered: () => this.#told.push('recovered'),
      },
      NO_TIME_PASSES,
    );
  }

  /** Keeps one plant after another within one turn of the event loop, and checks those that are refused. */
  async keep(count: number, textLength: number): Promise<void> {
    const refused: { plant: Kept; refusal: NotConfirmed['refused']; answered: Promise<void> }[] = [];
    for (let kept = 0; kept < count; kept++) {
      const plant: Kept = { id: BigInt(this.#plants.length), textLength, result: undefined };
      const refusal = this.#refusalDue(textLength);
      const answered = this.#hand(plant);
      if (refusal === undefined) {
        this.#queue.push(plant);
        this.#queueTextLength += textLength;
      } else {
        refused.push({ plant, refusal, answered });
      }
    }
    // They are answered at once: no turn of the event loop goes by.
    await Promise.race([Promise.all(refused.map(({ answered }) => answered)), turnOfTheEventLoop()]);
    for (const { plant, refusal } of refused) assert.equal(plant.result?.refused, refusal);
  }

  async #hand(plant: Kept): Promise<void> {
    const tag = plant.textLength > 0 ? { tag: 'x' } : {};
    const name = text(Math.max(0, plant.textLength - 1));
    this.#plants.push(plant);
    this.#inKeep = true;
    const promise = this.#groupCommit.keep({
      plant: { id: plant.id, name, ...tag },
      recordedBy: Number(plant.id),
    });
    this.#inKeep = false;
    plant.result = await promise;
  }

  #refusalDue(textLength: number): 'busy' | 'shuttingDown' | undefined {
    if (this.#closed !== 'no') return 'shuttingDown';
    if (this.#queue.length === QUEUE_PLANTS_MAX) return 'busy';
    return this.#queueTextLength + textLength > QUEUE_TEXT_LENGTH_MAX ? 'busy' : undefined;
  }

  /** The engine's side. What is wrong with a batch is kept for the script: here, group commit would get it. */
  #commit(writes: readonly PlantWrite[]): Promise<WriteResult[]> {
    const answered = Promise.withResolvers<WriteResult[]>();
    try {
      this.#batches.push({ plants: this.#takeBatch(writes), answered });
      assert.ok(this.#batches.length <= this.#commitsInFlightMax, `${this.#batches.length} in flight`);
    } catch (fault) {
      this.#faults.push(fault);
    }
    return answered.promise;
  }

  #takeBatch(writes: readonly PlantWrite[]): Kept[] {
    assert.ok(
      !this.#inKeep,
      'a batch is made at the end of the turn, so that what arrives together shares it',
    );
    const plants = this.#queue.slice(0, writes.length);
    assert.ok(plants.length > 0, 'no batch is empty');
    const stranger = writes.find(({ plant, recordedBy }, index) => {
      return plant.id !== plants[index]?.id || recordedBy !== Number(plant.id);
    });
    assert.equal(stranger, undefined, 'a batch holds what waited longest, in order of arrival');
    this.#queue = this.#queue.slice(plants.length);
    assert.ok(
      this.#batches.length === 0 || plants.length + this.#queue.length >= this.#lastBatchPlants,
      'a further batch is made before as many plants wait as the last one had',
    );
    this.#lastBatchPlants = plants.length;

    const batchText = plants.reduce((sum, { textLength }) => sum + textLength, 0);
    this.#queueTextLength -= batchText;
    assert.ok(plants.length <= BATCH_PLANTS_MAX, `${plants.length} plants in a batch`);
    assert.ok(batchText <= BATCH_TEXT_LENGTH_MAX, `${batchText} of text in a batch`);
    const next = this.#queue[0];
    assert.ok(
      next === undefined ||
        plants.length === BATCH_PLANTS_MAX ||
        batchText + next.textLength > BATCH_TEXT_LENGTH_MAX,
      'a batch takes all that fits',
    );

    return plants;
  }

  /** Ends one of the batches in flight, any of them; does nothing when there is none. */
  async endBatch(which: number, how: 'answer' | 'fail'): Promise<void> {
    const [batch] = this.#batches.splice(which % Math.max(1, this.#batches.length), 1);
    if (batch === undefined) return;
    assertNoAnswer(batch.plants);
    if ((how === 'fail') !== this.#failing) this.#expectedTold.push(how === 'fail' ? 'failed' : 'recovered');
    this.#failing = how === 'fail';

    const results = batch.plants.map(resultOf);
    if (how === 'fail') batch.answered.reject(FAILURE);
    else batch.answered.resolve(results);
    await this.turn();
    const refusal = { refused: 'storeUnavailable' };
    assert.deepEqual(
      batch.plants.map(({ result }) => result),
      how === 'fail' ? batch.plants.map(() => refusal) : results,
    );
  }

  close(): void {
    if (this.#closed === 'no') this.#closed = 'asked';
    void this.#groupCommit.close().then(() => {
      assert.deepEqual([this.#queue, this.#batches], [[], []], 'closed with plants left');
      this.#closed = 'settled';
    });
  }

  /** Lets a turn of the event loop go by, and checks what must hold then. */
  async turn(): Promise<void> {
    await turnOfTheEventLoop();
    for (const fault of this.#faults) throw fault;
    assert.ok(
      this.#batches.length > 0 || this.#queue.length === 0,
      'plants wait though the engine has nothing to do',
    );
    const mayTakeMore = this.#batches.length < this.#commitsInFlightMax;
    assert.ok(
      !mayTakeMore || this.#queue.length < this.#lastBatchPlants || this.#queue.length === 0,
      'a whole batch waits',
    );
    const waiting = [...this.#queue, ...this.#batches.flatMap(({ plants }) => plants)];
    assertNoAnswer(waiting);
    assert.deepEqual(this.#told, this.#expectedTold);
    if (waiting.length === 0) assert.notEqual(this.#closed, 'asked', 'close waits for nothing');
  }

  /** Answers all that is left; every plant has its answer then. */
  async finish(): Promise<void> {
    await this.turn();
    while (this.#batches.length > 0) await this.endBatch(0, 'answer');
    this.close();
    await this.turn();
    assert.equal(this.#closed, 'settled');
    for (const { id, result } of this.#plants) assert.ok(result, `plant ${id} was never answered`);
    await this.keep(1, 0);
  }

  /** How many plants have had each kind of answer. */
  get answers(): Record<string, number> {
    const kinds = Map.groupBy(this.#plants, ({ result }) => result?.refused ?? 'kept');
    return Object.fromEntries([...kinds].map(([kind, plants]) => [kind, plants.length]));
  }
}

/** No two plants get the same result, apart from those that the engine refuses. */
function resultOf({ id }: Kept): WriteResult {
  return id % 7n === 6n ? { refused: 'idTaken' } : { outcome: 'created', revision: Number(id) + 1 };
}

function assertNoAnswer(plants: Kept[]): void {
  const early = plants.find(({ result }) => result !== undefined);
  assert.equal(early, undefined, 'answered before the commit that holds it');
}

const texts = new Map<number, string>();

/** The same text for the same length: a queue full of long ones then costs no memory. */
function text(length: number): string {
  const known = texts.get(length) ?? 'x'.repeat(length);
  texts.set(length, known);
  return known;
}

type Step =
  | { do: 'keep'; count: number; textLength: number }
  | { do: 'turn' | 'close' }
  | { do: 'answer' | 'fail'; which: number };

function take(bench: Bench, step: Step): Promise<void> {
  switch (step.do) {
    case 'keep':
      return bench.keep(step.count, step.textLength);
    case 'turn':
      return bench.turn();
    case 'close':
      bench.close();
      return Promise.resolve();
    default:
      return bench.endBatch(step.which, step.do);
  }
}

const textLengths = fc.constantFrom(
  0,
  1,
  10,
  4_000,
  1_000_000,
  BATCH_TEXT_LENGTH_MAX / 2,
  BATCH_TEXT_LENGTH_MAX,
  FAILING_QUEUE_WAIT_MS,
);
const steps: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('keep'),
      count: fc.integer({ min: 1, max: 9 }),
      textLength: textLengths,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('keep'),
      count: fc.constantFrom(BATCH_PLANTS_MAX - 1, BATCH_PLANTS_MAX + 1, QUEUE_PLANTS_MAX),
      textLength: fc.constantFrom(0, 10, 4_000),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('turn') }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('answer'), which: fc.nat(5) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('fail'), which: fc.nat(5) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('close') }) },
);

test('whatever arrives and however the engine answers, each plant gets its own answer once', async () => {
  const script = fc.array(steps, { minLength: 1, maxLength: 40, size: 'max' });
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 3 }), script, async (commitsInFlightMax, taken) => {
      const bench = new Bench(commitsInFlightMax);
      for (const step of taken) await take(bench, step);
      await bench.finish();
    }),
    { numRuns: 100 },
  );
});

test('a queue full of plants answers busy at once, and has room again after a batch', async () => {
  const bench = new Bench(1);
  await bench.keep(QUEUE_PLANTS_MAX + 3, 1);
  await bench.turn();
  await bench.keep(BATCH_PLANTS_MAX + 2, 1);
  await bench.finish();
  const { busy, kept, idTaken } = bench.answers;
  assert.equal(busy, 5);
  assert.equal(kept! + idTaken!, QUEUE_PLANTS_MAX + BATCH_PLANTS_MAX);
});

test('a queue full of text answers busy at once, and still takes what fits', async () => {
  const bench = new Bench(1);
  const fitting = QUEUE_TEXT_LENGTH_MAX / BATCH_TEXT_LENGTH_MAX;
  await bench.keep(fitting - 1, BATCH_TEXT_LENGTH_MAX);
  await bench.keep(1, BATCH_TEXT_LENGTH_MAX - 1);
  await bench.keep(1, 2);
  await bench.keep(1, 1);
  await bench.keep(1, 0);
  await bench.finish();
  assert.equal(bench.answers.busy, 1);
});

test('a failed batch takes no other with it, and the queue tries again by itself', async () => {
  const bench = new Bench(2);
  await bench.keep(3 * BATCH_PLANTS_MAX, 0);
  await bench.turn();
  await bench.endBatch(1, 'fail');
  await bench.finish();
  assert.equal(bench.answers.storeUnavailable, BATCH_PLANTS_MAX);
});

test('when a batch fails, those that have waited long are answered with it and the others go on', async () => {
  let now = 0;
  const batches: PromiseWithResolvers<WriteResult[]>[] = [];
  const engine: Pick<StorageEngine, 'commit' | 'commitsInFlightMax'> = {
    commitsInFlightMax: 1,
    commit: () => {
      batches.push(Promise.withResolvers());
      return batches.at(-1)!.promise;
    },
  };
  const watcher = { storeFailed: () => {}, storeRecovered: () => {} };
  const groupCommit = new GroupCommit(engine as StorageEngine, watcher, {
    ...NO_TIME_PASSES,
    now: () => now,
  });
  const keep = async (id: bigint): Promise<WriteResult | NotConfirmed> => {
    const result = groupCommit.keep({ plant: { id, name: 'x' }, recordedBy: 1 });
    await turnOfTheEventLoop();
    return await result;
  };
  const inBatch = keep(1n);
  await turnOfTheEventLoop();
  const longQueued = keep(2n);
  now = FAILING_QUEUE_WAIT_MS;
  const justQueued = keep(3n);
  batches[0]!.reject(FAILURE);
  assert.deepEqual(await inBatch, { refused: 'storeUnavailable' });
  assert.deepEqual(await longQueued, { refused: 'storeUnavailable' });
  batches[1]!.resolve([{ outcome: 'created', revision: 1 }]);
  assert.deepEqual(await justQueued, { outcome: 'created', revision: 1 });
  assert.equal(batches.length, 2);
});

test('by the pace of the last batch no plant is taken that would wait too long, but always some are', async () => {
  let now = 0;
  const batches: PromiseWithResolvers<WriteResult[]>[] = [];
  const engine = {
    commitsInFlightMax: 1,
    commit: () => {
      batches.push(Promise.withResolvers());
      return batches.at(-1)!.promise;
    },
  };
  const watcher = { storeFailed: () => {}, storeRecovered: () => {} };
  const groupCommit = new GroupCommit(engine, watcher, { ...NO_TIME_PASSES, now: () => now });
  const results: (WriteResult | NotConfirmed)[] = [];
  const keep = async (count: number): Promise<void> => {
    for (let id = 0n; id < count; id++) {
      void groupCommit.keep({ plant: { id, name: 'x' }, recordedBy: 1 }).then(result => results.push(result));
    }
    await turnOfTheEventLoop();
  };
  const commitAfter = async (ms: number): Promise<void> => {
    now += ms;
    batches.at(-1)!.resolve(Array(BATCH_PLANTS_MAX).fill({ outcome: 'created', revision: 1 }));
    await turnOfTheEventLoop();
  };
  const takenOf = async (count: number): Promise<number> => {
    const busy = results.length;
    await keep(count);
    return count - (results.length - busy);
  };
  assert.equal(await takenOf(2 * BATCH_PLANTS_MAX), 2 * BATCH_PLANTS_MAX, 'before anything is known all are');
  await commitAfter(OVERLOAD_WAIT_MS / 2);
  // Half of the time for one batch: two may be under way, of which one is.
  const more = await takenOf(2 * BATCH_PLANTS_MAX);
  assert.ok(Math.abs(more - BATCH_PLANTS_MAX) <= 2, `${more} were taken`);
  await commitAfter(100 * OVERLOAD_WAIT_MS);
  assert.equal(await takenOf(1), 0);
  await commitAfter(100 * OVERLOAD_WAIT_MS);
  assert.equal(await takenOf(BATCH_PLANTS_MAX), UNDER_WAY_PLANTS_MIN);
});
