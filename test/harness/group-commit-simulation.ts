import {
  type Clock,
  type CommittingEngine,
  GroupCommit,
  type StoreWatcher,
} from '../../src/store/group-commit.ts';
import {
  BATCH_PLANTS_MAX,
  BATCH_TEXT_LENGTH_MAX,
  FAILING_QUEUE_WAIT_MS,
  OVERLOAD_WAIT_MS,
  QUEUE_PLANTS_MAX,
  QUEUE_TEXT_LENGTH_MAX,
  UNDER_WAY_PLANTS_MIN,
} from '../../src/store/limits.ts';
import {
  type NotConfirmed,
  type PlantWrite,
  StoreUnavailable,
  type WriteResult,
} from '../../src/store/plant-store.ts';
import { seededRandom } from './seeded-random.ts';

/** What happened in simulations, counted, so that it is seen that they bring about what they are to judge. */
export class SimulatedCounts {
  plants = 0;
  batches = 0;
  batchesOutOfOrder = 0;
  batchesFailed = 0;
  busyForNumber = 0;
  busyForText = 0;
  busyForPace = 0;
  settledFromQueue = 0;
  refusedForShutdown = 0;
}

interface SimulatedPlant {
  /** Its place in the order of arrival; its id, its token and its revision are made of it. */
  index: number;
  textLength: number;
  queuedAt: number;
  /** Under way when it arrived. */
  ahead: number;
  result: WriteResult | NotConfirmed | undefined;
}

const STALL_MS = 2_000;
const LONG_TEXTS = [1, 1_000_000, BATCH_TEXT_LENGTH_MAX / 2 + 1, BATCH_TEXT_LENGTH_MAX];

/**
 * Runs group commit against callers, an engine and a clock that a seed decides: the same seed gives the same run again.
 * Nothing here takes real time. What must hold is checked whenever something happened.
 *
 * @param counts is added to
 * @throws {Error} with the seed, at the first thing that must not happen
 */
export async function simulateGroupCommit(seed: number, counts: SimulatedCounts): Promise<void> {
  try {
    await new Simulation(seed, counts).run();
  } catch (error) {
    throw new Error(`seed ${seed}: ${(error as Error).message}`, { cause: error });
  }
}

/** What a seed stands for. */
function scenarioOf(seed: number, random: (below: number) => number) {
  const pick = <Value>(...values: Value[]): Value => values[random(values.length)]!;
  // Few fill the queue, for that takes as long as a hundred others.
  const isFlood = seed % 200 === 0;
  const isSlow = seed % 40 === 20;
  return {
    commitsInFlightMax: 1 + random(4),
    /** A commit takes this long, and up to so much more. */
    commitMs: isSlow ? pick(50, 400, 800) : pick(0, 1, 5, 30),
    jitterMs: pick(0, 0, 3, 100),
    /** Of a hundred commits. */
    failing: isSlow ? pick(0, 50) : pick(0, 0, 10, 50, 100),
    stalling: isSlow ? pick(0, 50) : pick(0, 0, 0, 10, 30),
    /** Arrivals: how many times, how far apart at most, how many at once at most. */
    bursts: isFlood ? 4 : isSlow ? 40 : 5 + random(25),
    pauseMs: isSlow ? pick(2, 300) : pick(0, 2, 20, 300),
    burstPlants: isFlood ? QUEUE_PLANTS_MAX : isSlow ? 800 : pick(1, 3, 20),
    textLengths: isFlood ? [0, 1] : pick([1, 10], [0, 10, 4_000], LONG_TEXTS),
    closesEarly: random(3) === 0,
  };
}

class Simulation {
  readonly #random: (below: number) => number;
  readonly #scenario: ReturnType<typeof scenarioOf>;
  readonly #counts: SimulatedCounts;
  readonly #groupCommit: GroupCommit;
  #nowMs = 0;
  /** What is to happen, in the order in which it was decided; of those due at the same time the first is first. */
  #events: { atMs: number; run: () => void }[] = [];
  #atEndOfTurn: (() => void)[] = [];
  #fault: Error | undefined;

  #arrived = 0;
  /** Taken and in no batch, in order of arrival. */
  #queue: SimulatedPlant[] = [];
  #queueTextLength = 0;
  readonly #inFlight: SimulatedPlant[][] = [];
  #lastBatchPlants = 0;
  /** With so many ahead of it a plant would wait too long, as far as any plant has shown. */
  #aheadMax = Number.POSITIVE_INFINITY;
  #unsettled = 0;
  #inKeep = false;
  #failing = false;
  readonly #told: string[] = [];
  #closed: 'no' | 'asked' | 'settled' = 'no';

  constructor(seed: number, counts: SimulatedCounts) {
    this.#random = seededRandom(seed);
    this.#scenario = scenarioOf(seed, this.#random);
    this.#counts = counts;
    const engine: CommittingEngine = {
      commitsInFlightMax: this.#scenario.commitsInFlightMax,
      commit: writes => this.#commit(writes),
    };
    const watcher: StoreWatcher = {
      storeFailed: () => this.#told.push('failed'),
      storeRecovered: () => this.#told.push('recovered'),
    };
    const clock: Clock = { now: () => this.#nowMs, atEndOfTurn: run => void this.#atEndOfTurn.push(run) };
    this.#groupCommit = new GroupCommit(engine, watcher, clock);
  }

  async run(): Promise<void> {
    const { bursts, pauseMs, closesEarly } = this.#scenario;
    let atMs = 0;
    for (let burst = 0; burst < bursts; burst++) {
      atMs += this.#random(pauseMs + 1);
      this.#at(atMs, () => this.#arrive());
    }
    this.#at(closesEarly ? this.#random(atMs + 1) : atMs + STALL_MS, () => this.#close());
    while (this.#events.length > 0) await this.#turn();
    this.#expect(this.#unsettled === 0, `${this.#unsettled} plants wait forever`);
    this.#expect(this.#closed === 'settled', 'close never ends');
    this.#throwFault();
  }

  #at(atMs: number, run: () => void): void {
    this.#events.push({ atMs, run });
  }

  /** The next event, and all that follows from it. */
  async #turn(): Promise<void> {
    const next = this.#events.reduce((first, each) => (each.atMs < first.atMs ? each : first));
    this.#events.splice(this.#events.indexOf(next), 1);
    this.#nowMs = next.atMs;
    next.run();
    await promisesToSettle();
    for (const run of this.#atEndOfTurn.splice(0)) run();
    await promisesToSettle();
    this.#checkAtRest();
    this.#throwFault();
  }

  /** Faults are found inside group commit's calls, which must not catch them. */
  #expect(holds: boolean, fault: string): void {
    if (!holds) this.#fault ??= new Error(`${fault} (at ${this.#nowMs} ms)`);
  }

  #throwFault(): void {
    if (this.#fault !== undefined) throw this.#fault;
  }

  #arrive(): void {
    const { burstPlants, textLengths } = this.#scenario;
    const count = 1 + this.#random(burstPlants);
    const textLength = textLengths[this.#random(textLengths.length)]!;
    for (let each = 0; each < count && this.#fault === undefined; each++) this.#keep(textLength);
  }

  #keep(textLength: number): void {
    const ahead = this.#queue.length + this.#plantsInFlight;
    const plant = { index: this.#arrived++, textLength, queuedAt: this.#nowMs, ahead, result: undefined };
    const refusal = this.#refusalDue(plant);
    this.#counts.plants++;
    this.#unsettled++;
    this.#inKeep = true;
    const answer = this.#groupCommit.keep(writeOf(plant));
    this.#inKeep = false;
    if (refusal === undefined) {
      this.#queue.push(plant);
      this.#queueTextLength += textLength;
    }
    void answer.then(result => this.#settled(plant, result, refusal));
    // Behind all that a refusal at once takes to arrive, and before anything else can happen.
    if (refusal !== undefined)
      this.#atEndOfTurn.push(() =>
        this.#expect(plant.result !== undefined, `${refusal} is not said at once`),
      );
  }

  get #plantsInFlight(): number {
    return this.#inFlight.reduce((sum, { length }) => sum + length, 0);
  }

  #refusalDue({ ahead, textLength }: SimulatedPlant): NotConfirmed['refused'] | undefined {
    if (this.#closed !== 'no') {
      this.#counts.refusedForShutdown++;
      return 'shuttingDown';
    }
    if (this.#queue.length >= QUEUE_PLANTS_MAX) this.#counts.busyForNumber++;
    else if (this.#queueTextLength + textLength > QUEUE_TEXT_LENGTH_MAX) this.#counts.busyForText++;
    else if (ahead >= UNDER_WAY_PLANTS_MIN && ahead >= this.#aheadMax) {
      this.#counts.busyForPace++;
    } else return undefined;
    return 'busy';
  }

  #settled(
    plant: SimulatedPlant,
    result: WriteResult | NotConfirmed,
    refusal: NotConfirmed['refused'] | undefined,
  ): void {
    this.#expect(plant.result === undefined, `plant ${plant.index} is settled twice`);
    plant.result = result;
    this.#unsettled--;
    if (refusal !== undefined)
      this.#expect(
        result.refused === refusal,
        `${refusal} is due, and the plant is told ${JSON.stringify(result)}`,
      );
    else
      this.#expect(
        result.refused !== 'busy' && result.refused !== 'shuttingDown',
        `told ${result.refused} though there is room`,
      );
  }

  #commit(writes: readonly PlantWrite[]): Promise<WriteResult[]> {
    const { commitMs, jitterMs, failing, stalling, commitsInFlightMax } = this.#scenario;
    const batch = this.#takeBatch(writes);
    this.#expect(this.#inFlight.length <= commitsInFlightMax, `${this.#inFlight.length} batches in flight`);
    const answered = Promise.withResolvers<WriteResult[]>();
    const takesMs = this.#random(100) < stalling ? STALL_MS : commitMs + this.#random(jitterMs + 1);
    const fails = this.#random(100) < failing;
    this.#at(this.#nowMs + takesMs, () =>
      fails ? this.#fail(batch, answered) : this.#answer(batch, answered),
    );
    return answered.promise;
  }

  #takeBatch(writes: readonly PlantWrite[]): SimulatedPlant[] {
    this.#expect(!this.#inKeep, 'a batch is made before the turn is over in which a plant came');
    this.#expect(this.#closed !== 'settled', 'a batch is made behind the end of close');
    const plants = this.#queue.splice(0, writes.length);
    this.#expect(plants.length > 0, 'an empty batch');
    for (const [place, write] of writes.entries()) {
      const plant = plants[place];
      if (plant !== undefined && write.plant.id === BigInt(plant.index) && write.recordedBy === plant.index)
        continue;
      this.#expect(false, `plant ${write.plant.id} is in a batch where ${plant?.index ?? 'none'} is due`);
      break;
    }
    const textLength = lengthOf(plants);
    this.#queueTextLength -= textLength;
    this.#expect(plants.length <= BATCH_PLANTS_MAX, `${plants.length} plants in a batch`);
    this.#expect(textLength <= BATCH_TEXT_LENGTH_MAX, `${textLength} of text in a batch`);
    const isWhole = plants.length + this.#queue.length >= this.#lastBatchPlants;
    this.#expect(this.#inFlight.length === 0 || isWhole, 'a small batch beside one in flight');
    const [next] = this.#queue;
    this.#expect(
      next === undefined ||
        plants.length === BATCH_PLANTS_MAX ||
        textLength + next.textLength > BATCH_TEXT_LENGTH_MAX,
      'a batch leaves what fits',
    );
    this.#lastBatchPlants = plants.length;
    this.#inFlight.push(plants);
    this.#counts.batches++;
    return plants;
  }

  /** Out of the batches in flight; from here on nothing that it holds may be told otherwise than as the engine said. */
  #end(batch: SimulatedPlant[]): void {
    this.#expect(
      batch.every(({ result }) => result === undefined),
      'a plant is answered before the engine has answered for its batch',
    );
    if (this.#inFlight[0] !== batch) this.#counts.batchesOutOfOrder++;
    this.#inFlight.splice(this.#inFlight.indexOf(batch), 1);
  }

  #answer(batch: SimulatedPlant[], answered: PromiseWithResolvers<WriteResult[]>): void {
    this.#end(batch);
    const last = batch.at(-1)!;
    if (last.ahead >= UNDER_WAY_PLANTS_MIN / 2) {
      this.#aheadMax = (last.ahead * OVERLOAD_WAIT_MS) / (this.#nowMs - last.queuedAt);
    }
    this.#failing = false;
    answered.resolve(batch.map(resultOf));
    this.#atEndOfTurn.push(() => {
      for (const plant of batch) {
        const { index, result } = plant;
        const isOwn = JSON.stringify(result) === JSON.stringify(resultOf(plant));
        this.#expect(isOwn, `plant ${index} is told ${JSON.stringify(result)} of a batch that was confirmed`);
      }
    });
  }

  #fail(batch: SimulatedPlant[], answered: PromiseWithResolvers<WriteResult[]>): void {
    this.#end(batch);
    this.#counts.batchesFailed++;
    this.#failing = true;
    const long = this.#queue.filter(({ queuedAt }) => this.#nowMs - queuedAt >= FAILING_QUEUE_WAIT_MS);
    this.#queue.splice(0, long.length);
    this.#queueTextLength -= lengthOf(long);
    this.#counts.settledFromQueue += long.length;
    answered.reject(new StoreUnavailable('the engine was told to fail'));
    const due = [...batch, ...long];
    this.#atEndOfTurn.push(() => {
      const other = due.find(({ result }) => result?.refused !== 'storeUnavailable');
      this.#expect(
        other === undefined,
        `plant ${other?.index} is told ${JSON.stringify(other?.result)} of a failure`,
      );
    });
  }

  #close(): void {
    this.#closed = 'asked';
    void this.#groupCommit.close().then(() => {
      this.#expect(this.#closed === 'asked', 'close ends twice');
      this.#expect(this.#queue.length + this.#inFlight.length === 0, 'close ends with plants left');
      this.#closed = 'settled';
    });
    this.#at(this.#nowMs + STALL_MS, () => {
      this.#keep(1);
      void this.#groupCommit.close();
    });
  }

  /** What holds whenever all has happened that follows from an event. */
  #checkAtRest(): void {
    const { commitsInFlightMax } = this.#scenario;
    const waiting = [...this.#queue, ...this.#inFlight.flat()];
    const early = waiting.find(({ result }) => result !== undefined);
    this.#expect(early === undefined, `plant ${early?.index} is settled while it waits`);
    this.#expect(this.#unsettled === waiting.length, 'a plant is neither settled nor waits');
    this.#expect(
      this.#queue.length === 0 || this.#inFlight.length > 0,
      'plants wait though the engine has nothing to do',
    );
    const isWhole = this.#queue.length > 0 && this.#queue.length >= this.#lastBatchPlants;
    this.#expect(!isWhole || this.#inFlight.length >= commitsInFlightMax, 'a whole batch waits');
    this.#expect(waiting.length > 0 || this.#closed !== 'asked', 'close waits for nothing');
    const alternates = this.#told.every((said, index) => said === (index % 2 === 0 ? 'failed' : 'recovered'));
    this.#expect(alternates, `the watcher was told ${this.#told.join(', ')}`);
    const saysFailing = this.#told.length % 2 === 1;
    this.#expect(saysFailing === this.#failing, 'the watcher was not told of a change');
  }
}

/** No promise takes a turn of the event loop. */
function promisesToSettle(): Promise<void> {
  return new Promise(resolve => void setImmediate(resolve));
}

function writeOf({ index, textLength }: SimulatedPlant): PlantWrite {
  return { plant: { id: BigInt(index), name: 'x'.repeat(textLength) }, recordedBy: index };
}

/** No two plants get the same result, apart from those that the engine refuses. */
function resultOf({ index }: SimulatedPlant): WriteResult {
  return index % 7 === 6 ? { refused: 'idTaken' } : { outcome: 'created', revision: index + 1 };
}

function lengthOf(plants: readonly SimulatedPlant[]): number {
  return plants.reduce((sum, { textLength }) => sum + textLength, 0);
}
