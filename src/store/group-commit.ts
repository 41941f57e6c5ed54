import type { NewPlant } from '../contract/plant.ts';
import {
  BATCH_PLANTS_MAX,
  BATCH_REPEATS_MAX,
  BATCH_TEXT_LENGTH_MAX,
  FAILING_QUEUE_TIMEOUT_MS,
  IN_FLIGHT_PLANTS_MIN,
  QUEUE_PLANTS_MAX,
  QUEUE_TEXT_LENGTH_MAX,
  QUEUE_TIME_MAX_MS,
} from './limits.ts';
import type {
  CommitStatistics,
  NotConfirmed,
  PlantWrite,
  StorageEngine,
  WriteResult,
} from './plant-store.ts';

type CommittingEngine = Pick<StorageEngine, 'commit' | 'commitsInFlightMax' | 'laneOf'>;

interface QueuedPlant extends PlantWrite {
  queuedAt: number;
  /** Plants of its lane that were queued or in a batch when this one arrived. */
  ahead: number;
  textLength: number;
  settle: (result: WriteResult | NotConfirmed) => void;
}

/**
 * The plants that may share a batch. Only Citus has several lanes: one for each worker. Lanes share
 * the queue equally, and each has its own limit of plants in flight. So a worker that is away makes
 * no plant of another one `busy`.
 */
class Lane {
  queue: QueuedPlant[] = [];
  queuedTextLength = 0;
  /** Plants that are queued or in a batch. */
  inFlight = 0;
  /** See `#updateInFlightMax`. */
  inFlightMax = Number.POSITIVE_INFINITY;
  batchesInFlight = 0;
  lastBatchPlants = 0;
}

/**
 * Group commit: many plants share one commit, so each plant pays for a fraction of a disk flush.
 *
 * | plant is   | event                                   | next state | `write` returns    |
 * | ---------- | --------------------------------------- | ---------- | ------------------ |
 * | new        | `write`, the queue has room             | queued     |                    |
 * | new        | `write`, the queue is full, or the wait | settled    | `busy`             |
 * |            | would exceed `QUEUE_TIME_MAX_MS`        |            |                    |
 * | new        | `write` after `close`                   | settled    | `shuttingDown`     |
 * | queued     | `dispatch` makes a batch                | in a batch |                    |
 * | queued     | a batch fails, and the plant has waited | settled    | `storeUnavailable` |
 * |            | for `FAILING_QUEUE_TIMEOUT_MS`          |            |                    |
 * | in a batch | the engine returns the results          | settled    | its own result     |
 * | in a batch | the engine fails                        | settled    | `storeUnavailable` |
 *
 * Only `dispatch` makes batches. The first batch of a lane starts as soon as plants are queued. A
 * further one, up to the maximum of the engine, starts when the queue is as long as the last batch
 * was. Of several lanes each has at most one batch in flight, so a slow lane does not occupy all
 * connections.
 *
 * If an engine has concurrent batches, an id is in one of them at a time. That batch has only a few
 * plants of the id, because their revisions are inserted one after the other. Further plants of the
 * id stay queued until that batch ends. So the later plant of a connection never becomes the
 * earlier revision. And an id that is sent often does not delay all plants of a batch.
 *
 * `dispatch` runs when a batch ends, and at the end of the event-loop iteration in which a plant
 * arrived. So plants that arrive together share a batch, and a single plant does not wait.
 *
 * A failed batch is not retried here. The engine does not know whether the commit became durable.
 * The client can safely send the plants again. The queued plants go into the next batch, which
 * shows whether the fault has ended. `close` settles when no plant is queued or in a batch.
 */
export class GroupCommit {
  readonly #engine: CommittingEngine;
  readonly #lanes = new Map<string, Lane>();
  readonly #now: () => number;
  /** The ids of all batches in flight. Empty if the engine takes one batch at a time. */
  readonly #idsInFlight = new Set<bigint>();
  #batchesInFlight = 0;
  #dispatchIsDue = false;
  #closed: PromiseWithResolvers<void> | undefined;

  /** @param now milliseconds of a monotonic clock */
  constructor(engine: CommittingEngine, now = () => performance.now()) {
    this.#engine = engine;
    this.#now = now;
  }

  get statistics(): CommitStatistics {
    const inFlightMax = this.#lanes.size === 0 ? QUEUE_PLANTS_MAX : this.#sum('inFlightMax');
    return {
      plantsInFlight: this.#sum('inFlight'),
      plantsInFlightMax: Math.min(Math.floor(inFlightMax), QUEUE_PLANTS_MAX),
      batchesInFlight: this.#batchesInFlight,
    };
  }

  write({ plant, contentChecksum, recordedBy }: PlantWrite): Promise<WriteResult | NotConfirmed> {
    const textLength = plant.name.length + (plant.tag?.length ?? 0);
    if (this.#closed !== undefined) return Promise.resolve({ rejected: 'shuttingDown' });
    const lane = this.#laneOf(plant);
    const { length } = lane.queue;
    if (
      lane.inFlight >= lane.inFlightMax ||
      length >= QUEUE_PLANTS_MAX / this.#lanes.size ||
      (length > 0 && lane.queuedTextLength + textLength > QUEUE_TEXT_LENGTH_MAX / this.#lanes.size)
    ) {
      return Promise.resolve({ rejected: 'busy' });
    }
    lane.queuedTextLength += textLength;
    if (!this.#dispatchIsDue) {
      this.#dispatchIsDue = true;
      setImmediate(() => this.#dispatch());
    }
    const queuedAt = this.#now();
    const ahead = lane.inFlight++;
    return new Promise(settle =>
      lane.queue.push({ plant, contentChecksum, recordedBy, queuedAt, ahead, textLength, settle }),
    );
  }

  /** Settles when every accepted plant is settled. Further plants are rejected. */
  close(): Promise<void> {
    this.#closed ??= Promise.withResolvers();
    this.#settleClose();
    return this.#closed.promise;
  }

  #sum(property: 'inFlight' | 'inFlightMax'): number {
    let sum = 0;
    for (const lane of this.#lanes.values()) sum += lane[property];
    return sum;
  }

  #laneOf({ id }: NewPlant): Lane {
    const name = this.#engine.laneOf(id);
    const lane = this.#lanes.get(name) ?? new Lane();
    this.#lanes.set(name, lane);
    return lane;
  }

  #dispatch(): void {
    this.#dispatchIsDue = false;
    for (;;) {
      const lane = this.#dueLane();
      if (lane === undefined) return;
      const batch = this.#takeBatch(lane);
      lane.lastBatchPlants = batch.length;
      lane.batchesInFlight++;
      this.#batchesInFlight++;
      this.#engine.commit(batch).then(
        results => this.#batchEnded(lane, batch, results),
        () => this.#batchFailed(lane, batch),
      );
    }
  }

  /** Of the lanes with a due batch, the one whose first plant has waited longest. */
  #dueLane(): Lane | undefined {
    if (this.#batchesInFlight >= this.#engine.commitsInFlightMax) return undefined;
    let due: Lane | undefined;
    for (const lane of this.#lanes.values()) {
      if (!this.#isDue(lane)) continue;
      if (due === undefined || lane.queue[0]!.queuedAt < due.queue[0]!.queuedAt) due = lane;
    }
    return due;
  }

  /** A small batch beside one in flight would waste a flush. It waits for the end of that batch. */
  #isDue({ queue, batchesInFlight, lastBatchPlants }: Lane): boolean {
    const plantsMin = batchesInFlight === 0 ? 1 : lastBatchPlants;
    if (queue.length < plantsMin || (batchesInFlight > 0 && this.#lanes.size > 1)) return false;
    let free = 0;
    for (const queued of queue) if (!this.#isHeldBack(queued) && ++free === plantsMin) return true;
    return false;
  }

  #isHeldBack({ plant }: QueuedPlant): boolean {
    return this.#idsInFlight.size > 0 && this.#idsInFlight.has(plant.id);
  }

  #takeBatch(lane: Lane): QueuedPlant[] {
    const { queue } = lane;
    const batch: QueuedPlant[] = [];
    const heldBack: QueuedPlant[] = [];
    /** How many plants of the batch have each id. */
    const repeats = new Map<bigint, number>();
    const isConcurrent = this.#engine.commitsInFlightMax > 1;
    let textLength = 0;
    let index = 0;
    for (; index < queue.length && batch.length < BATCH_PLANTS_MAX; index++) {
      const next = queue[index]!;
      const { id } = next.plant;
      const repeated = isConcurrent ? (repeats.get(id) ?? 0) : 0;
      if (this.#isHeldBack(next) || repeated === BATCH_REPEATS_MAX) {
        heldBack.push(next);
        continue;
      }
      if (batch.length > 0 && textLength + next.textLength > BATCH_TEXT_LENGTH_MAX) break;
      textLength += next.textLength;
      if (isConcurrent) repeats.set(id, repeated + 1);
      batch.push(next);
    }
    lane.queuedTextLength -= textLength;
    queue.splice(0, index, ...heldBack);
    for (const id of repeats.keys()) this.#idsInFlight.add(id);
    return batch;
  }

  #leaveFlight(lane: Lane, batch: QueuedPlant[]): void {
    lane.batchesInFlight--;
    this.#batchesInFlight--;
    lane.inFlight -= batch.length;
    // Skipped on SQLite, where the hash of each bigint would cost 0.1 µs.
    if (this.#idsInFlight.size > 0) for (const { plant } of batch) this.#idsInFlight.delete(plant.id);
  }

  #batchEnded(lane: Lane, batch: QueuedPlant[], results: WriteResult[]): void {
    this.#leaveFlight(lane, batch);
    this.#updateInFlightMax(lane, batch.at(-1)!);
    // The next batch starts first, so the engine works while these callers continue.
    this.#dispatch();
    for (const [index, queued] of batch.entries()) queued.settle(results[index]!);
    this.#settleClose();
  }

  /**
   * Limits the plants in flight of a lane so that the next plant waits at most `QUEUE_TIME_MAX_MS`.
   *
   * Little's law: plants ahead, divided by the time waited, is the rate. A short queue does not
   * show the rate that the engine can reach, so it changes nothing.
   */
  #updateInFlightMax(lane: Lane, { ahead, queuedAt }: QueuedPlant): void {
    if (ahead < IN_FLIGHT_PLANTS_MIN / 2) return;
    const waitedMs = this.#now() - queuedAt;
    lane.inFlightMax = Math.max((ahead * QUEUE_TIME_MAX_MS) / waitedMs, IN_FLIGHT_PLANTS_MIN);
  }

  #batchFailed(lane: Lane, batch: QueuedPlant[]): void {
    this.#leaveFlight(lane, batch);
    for (const queued of [...batch, ...this.#takeLongQueued(lane)]) {
      queued.settle({ rejected: 'storeUnavailable' });
    }
    this.#dispatch();
    this.#settleClose();
  }

  #takeLongQueued(lane: Lane): QueuedPlant[] {
    const { queue } = lane;
    const since = this.#now() - FAILING_QUEUE_TIMEOUT_MS;
    const first = queue.findIndex(({ queuedAt }) => queuedAt > since);
    const taken = queue.splice(0, first === -1 ? queue.length : first);
    lane.inFlight -= taken.length;
    for (const { textLength } of taken) lane.queuedTextLength -= textLength;
    return taken;
  }

  #settleClose(): void {
    if (this.#sum('inFlight') === 0) this.#closed?.resolve();
  }
}
