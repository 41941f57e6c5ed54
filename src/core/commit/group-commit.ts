import { type Clock, SYSTEM_CLOCK } from '../clock.ts';
import { batchLimiter, textLengthOf } from './batch-size.ts';
import { contentChecksum } from './checksum.ts';
import type {
  CommitEngine,
  CommitStatistics,
  NewPlantWrite,
  NotConfirmed,
  PlantQueue,
  PlantWrite,
  WriteResult,
} from './plant-commits.ts';

/** Plants that may wait for a commit. The next plant is rejected with 503. */
export const QUEUE_PLANTS_MAX = 16_384;
/** Text of the plants that may wait for a commit, in UTF-16 code units of names and tags. */
export const QUEUE_TEXT_LENGTH_MAX = 64 * 1024 * 1024;
/** A plant that would wait longer than this, at the rate of the last batches, gets 503 at once. */
export const QUEUE_TIME_MAX_MS = 500;
/** Plants that may always be in flight. Small batches do not show the rate of the engine. */
export const IN_FLIGHT_PLANTS_MIN = 1_024;
/** When a commit fails, queued plants that have waited longer than this get 503, too. */
export const FAILING_QUEUE_TIMEOUT_MS = 1_500;
/** Plants of one id in one commit of an engine that is not sequential. */
export const BATCH_REPEATS_MAX = 64;

interface BatchRules {
  commit: CommitEngine['commit'];
  commitsInFlightMax: number;
  /**
   * The engine inserts plants one by one, and batches in the order of the calls. Otherwise an id is
   * in only one batch in flight, with at most `BATCH_REPEATS_MAX` plants.
   */
  isSequential: boolean;
}

interface QueuedPlant extends PlantWrite {
  queuedAt: number;
  /** How many plants were queued or in a batch when this one arrived. */
  ahead: number;
  textLength: number;
  settle: (result: WriteResult | NotConfirmed) => void;
}

/**
 * Group commit: many plants share one commit, so each plant pays for a fraction of a disk flush.
 *
 * | plant is   | event                                   | next state | `write` returns    |
 * | ---------- | --------------------------------------- | ---------- | ------------------ |
 * | new        | `write`, the queue has room             | queued     |                    |
 * | new        | `write`, the queue is full, or as many  | settled    | `busy`             |
 * |            | are in flight as may be, see below      |            |                    |
 * | new        | `write` after `close`                   | settled    | `shuttingDown`     |
 * | queued     | `dispatch` makes a batch                | in a batch |                    |
 * | queued     | a batch fails, and the plant has waited | settled    | `storeUnavailable` |
 * |            | for `FAILING_QUEUE_TIMEOUT_MS`          |            |                    |
 * | in a batch | the engine returns the results          | settled    | its own result     |
 * | in a batch | the engine fails                        | settled    | `storeUnavailable` |
 *
 * `dispatch` runs when a batch ends, and at the end of the event-loop iteration in which a plant
 * arrived. So plants that arrive together share a batch. `dispatch` makes a batch if none is in
 * flight. While others are in flight, it makes one more when the queue is as long as the last batch
 * was. The engine limits the number of batches in flight.
 *
 * A plant of the only sender is alone if no other plant is in flight. Then `dispatch` runs at once,
 * and the commit may block the event loop.
 *
 * If an engine is not sequential, an id is in one batch in flight at a time. Further plants of the
 * id stay queued until that batch ends. So of two plants of a connection, the later one never
 * becomes the earlier revision. A batch has few plants of one id, because their revisions are
 * inserted one after the other.
 *
 * A failed batch is not retried here, because the engine does not know whether the commit became
 * durable. The client can safely send the plants again.
 */
export class GroupCommit implements PlantQueue {
  readonly #engine: BatchRules;
  readonly #clock: Clock;
  readonly #queue: QueuedPlant[] = [];
  #queuedTextLength = 0;
  /** Plants that are queued or in a batch. */
  #inFlight = 0;
  /** See `#updateInFlightMax`. */
  #inFlightMax = Number.POSITIVE_INFINITY;
  #batchesInFlight = 0;
  /** The number of plants of the batch that started last. */
  #lastBatchPlants = 0;
  /** The ids of all batches in flight. It is empty if the engine is sequential. */
  readonly #idsInFlight = new Set<bigint>();
  /** `#isBatchDue` has examined so many plants from the start of the queue. */
  #examinedPlants = 0;
  /** So many of the examined plants have no id in flight. */
  #examinedWithFreeId = 0;
  /** Whether `#dispatch` will run at the end of this event-loop iteration. */
  #isDispatchScheduled = false;
  /** Set by `close`; resolved when no plant is in flight. */
  #closed: PromiseWithResolvers<void> | undefined;

  constructor(engine: BatchRules, clock: Clock = SYSTEM_CLOCK) {
    this.#engine = engine;
    this.#clock = clock;
  }

  get statistics(): CommitStatistics {
    return {
      plantsInFlight: this.#inFlight,
      plantsInFlightMax: Math.min(Math.floor(this.#inFlightMax), QUEUE_PLANTS_MAX),
      isFull: this.#isFull(1),
      batchesInFlight: this.#batchesInFlight,
    };
  }

  write(
    { plant, recordedBy, ifRevision, trace }: NewPlantWrite,
    isOnlySender = false,
  ): Promise<WriteResult | NotConfirmed> {
    const textLength = textLengthOf(plant);
    if (this.#closed !== undefined) return Promise.resolve({ kind: 'notConfirmed', error: 'shuttingDown' });
    if (this.#isFull(textLength)) return Promise.resolve({ kind: 'notConfirmed', error: 'busy' });
    this.#queuedTextLength += textLength;
    const queuedAt = this.#clock.now();
    const ahead = this.#inFlight++;
    const isAlone = isOnlySender && ahead === 0;
    return new Promise(settle => {
      this.#queue.push({
        plant,
        // The checksum is computed before the plant waits, so it covers the queue and the engine.
        // Nothing compares it before the insert: whoever reads the row finds the damage.
        contentChecksum: contentChecksum(plant),
        recordedBy,
        ifRevision,
        trace,
        queuedAt,
        ahead,
        textLength,
        settle,
      });
      if (isAlone) this.#dispatch(true);
      else if (!this.#isDispatchScheduled) {
        this.#isDispatchScheduled = true;
        this.#clock.nextIteration(() => this.#dispatch());
      }
    });
  }

  /** Whether the queue has no room for a plant with a text of this length. */
  #isFull(textLength: number): boolean {
    const { length } = this.#queue;
    return (
      this.#inFlight >= this.#inFlightMax ||
      length >= QUEUE_PLANTS_MAX ||
      (length > 0 && this.#queuedTextLength + textLength > QUEUE_TEXT_LENGTH_MAX)
    );
  }

  close(): Promise<void> {
    this.#closed ??= Promise.withResolvers();
    this.#resolveCloseIfIdle();
    return this.#closed.promise;
  }

  #dispatch(mayBlock = false): void {
    this.#isDispatchScheduled = false;
    while (this.#isBatchDue()) {
      const batch = this.#takeBatch();
      this.#lastBatchPlants = batch.length;
      this.#batchesInFlight++;
      this.#engine.commit(batch, mayBlock).then(
        results => this.#batchEnded(batch, results),
        () => this.#batchFailed(batch),
      );
    }
  }

  /** Whether to make a batch now. A small batch beside one in flight would waste a flush. */
  #isBatchDue(): boolean {
    if (this.#batchesInFlight >= this.#engine.commitsInFlightMax) return false;
    const plantsMin = this.#batchesInFlight === 0 ? 1 : this.#lastBatchPlants;
    if (this.#queue.length < plantsMin) return false;
    if (this.#idsInFlight.size === 0) return true;
    // Plants whose id is in flight cannot be in a batch now. There may be thousands, so each call
    // continues where the last one ended.
    while (this.#examinedWithFreeId < plantsMin && this.#examinedPlants < this.#queue.length) {
      if (!this.#idsInFlight.has(this.#queue[this.#examinedPlants++]!.plant.id)) this.#examinedWithFreeId++;
    }
    return this.#examinedWithFreeId >= plantsMin;
  }

  #takeBatch(): QueuedPlant[] {
    const batch: QueuedPlant[] = [];
    /** Plants before the end of the batch that stay queued, because of their ids. */
    const heldBack: QueuedPlant[] = [];
    /** The number of plants of each id in the batch. It is empty if the engine is sequential. */
    const repeats = new Map<bigint, number>();
    const { isSequential } = this.#engine;
    const addIfFits = batchLimiter();
    let index = 0;
    for (; index < this.#queue.length; index++) {
      const next = this.#queue[index]!;
      const { id } = next.plant;
      const repeated = isSequential ? 0 : (repeats.get(id) ?? 0);
      if (repeated === BATCH_REPEATS_MAX || (!isSequential && this.#idsInFlight.has(id))) {
        heldBack.push(next);
        continue;
      }
      if (!addIfFits(next.textLength)) break;
      this.#queuedTextLength -= next.textLength;
      if (!isSequential) repeats.set(id, repeated + 1);
      batch.push(next);
    }
    this.#queue.splice(0, index, ...heldBack);
    for (const id of repeats.keys()) this.#idsInFlight.add(id);
    this.#examineAgain();
    return batch;
  }

  #removeInFlight(batch: QueuedPlant[]): void {
    this.#batchesInFlight--;
    this.#inFlight -= batch.length;
    if (!this.#engine.isSequential) for (const { plant } of batch) this.#idsInFlight.delete(plant.id);
    this.#examineAgain();
  }

  /** Starts over after a change of the start of the queue, or of the ids in flight. */
  #examineAgain(): void {
    this.#examinedPlants = 0;
    this.#examinedWithFreeId = 0;
  }

  #batchEnded(batch: QueuedPlant[], results: WriteResult[]): void {
    this.#removeInFlight(batch);
    this.#updateInFlightMax(batch.at(-1)!);
    // The next batch starts first, so the engine works while the callers handle their results.
    this.#dispatch();
    for (const [index, queued] of batch.entries()) queued.settle(results[index]!);
    this.#resolveCloseIfIdle();
  }

  /**
   * Limits the plants in flight so that the next plant waits at most `QUEUE_TIME_MAX_MS`. The rate
   * is the number of plants ahead of the last one, divided by the time that it waited (Little's
   * law). A short queue does not show the rate that the engine can reach: then the limit stays.
   *
   * @param last the last plant of a batch that has ended
   */
  #updateInFlightMax(last: QueuedPlant): void {
    const { ahead, queuedAt } = last;
    if (ahead < IN_FLIGHT_PLANTS_MIN / 2) return;
    const waitedMs = this.#clock.now() - queuedAt;
    this.#inFlightMax = Math.max((ahead * QUEUE_TIME_MAX_MS) / waitedMs, IN_FLIGHT_PLANTS_MIN);
  }

  #batchFailed(batch: QueuedPlant[]): void {
    this.#removeInFlight(batch);
    for (const queued of [...batch, ...this.#takeLongQueued()]) {
      queued.settle({ kind: 'notConfirmed', error: 'storeUnavailable' });
    }
    this.#dispatch();
    this.#resolveCloseIfIdle();
  }

  /** Removes the plants from the queue that have waited for `FAILING_QUEUE_TIMEOUT_MS`. */
  #takeLongQueued(): QueuedPlant[] {
    const since = this.#clock.now() - FAILING_QUEUE_TIMEOUT_MS;
    const later = this.#queue.findIndex(({ queuedAt }) => queuedAt > since);
    const taken = this.#queue.splice(0, later === -1 ? this.#queue.length : later);
    this.#inFlight -= taken.length;
    for (const { textLength } of taken) this.#queuedTextLength -= textLength;
    return taken;
  }

  #resolveCloseIfIdle(): void {
    if (this.#inFlight === 0) this.#closed?.resolve();
  }
}
