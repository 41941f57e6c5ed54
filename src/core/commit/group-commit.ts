import { type Clock, SYSTEM_CLOCK } from '../clock.ts';
import { batchLimiter, textLengthOf } from './batch-size.ts';
import { contentChecksum } from './checksum.ts';
import { IdsInFlight } from './ids-in-flight.ts';
import { InFlightLimit } from './in-flight-limit.ts';
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
/** When a commit fails, queued plants that have waited longer than this get 503, too. */
export const FAILING_QUEUE_TIMEOUT_MS = 1_500;
/** After so many plants in a row that were alone, a single client sends one plant at a time. */
export const ALONE_PLANTS_MIN = 16;

interface BatchEngine {
  commit: CommitEngine['commit'];
  commitsInFlightMax: number;
  /**
   * The engine inserts plants one by one, and batches in the order of the calls. Otherwise an id is
   * in only one batch in flight ({@link IdsInFlight}).
   */
  isSequential: boolean;
  /**
   * Blocks the event loop until the only commit in flight has ended, for a millisecond at most;
   * undefined: the engine never blocks.
   */
  awaitCommit?: () => void;
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
 * |            | are in flight as `InFlightLimit` allows |            |                    |
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
 * If each of the last plants arrived while no other was in flight, a single client sends one at a
 * time. Then `dispatch` runs at once, and the queue waits for the commit, because the service has
 * nothing else to do.
 *
 * A failed batch is not retried here, because the engine does not know whether the commit became
 * durable. The client can safely send the plants again.
 */
export class GroupCommit implements PlantQueue {
  readonly #engine: BatchEngine;
  readonly #clock: Clock;
  readonly #queue: QueuedPlant[] = [];
  #queuedTextLength = 0;
  /** Plants that are queued or in a batch. */
  #inFlight = 0;
  readonly #inFlightLimit = new InFlightLimit();
  #batchesInFlight = 0;
  /** How many plants in a row have arrived while no other was queued or in a batch. */
  #alonePlants = 0;
  /** The number of plants of the batch that started last. */
  #lastBatchPlants = 0;
  /** Undefined if the engine is sequential. */
  readonly #idsInFlight: IdsInFlight | undefined;
  /** Whether `#dispatch` will run at the end of this event-loop iteration. */
  #isDispatchScheduled = false;
  /** Set by `close`; resolved when no plant is in flight. */
  #closed: PromiseWithResolvers<void> | undefined;

  constructor(engine: BatchEngine, clock: Clock = SYSTEM_CLOCK) {
    this.#engine = engine;
    this.#idsInFlight = engine.isSequential ? undefined : new IdsInFlight();
    this.#clock = clock;
  }

  get statistics(): CommitStatistics {
    const plantsInBatches = this.#inFlight - this.#queue.length;
    return {
      plantsInFlight: this.#inFlight,
      plantsInFlightMax: Math.min(Math.floor(this.#inFlightLimit.plants), plantsInBatches + QUEUE_PLANTS_MAX),
      isFull: this.#isFull(1),
      batchesInFlight: this.#batchesInFlight,
    };
  }

  write({ plant, recordedBy, ifRevision, origin }: NewPlantWrite): Promise<WriteResult | NotConfirmed> {
    const textLength = textLengthOf(plant);
    if (this.#closed !== undefined) return Promise.resolve({ kind: 'notConfirmed', error: 'shuttingDown' });
    if (this.#isFull(textLength)) return Promise.resolve({ kind: 'notConfirmed', error: 'busy' });
    this.#queuedTextLength += textLength;
    const queuedAt = this.#clock.now();
    const ahead = this.#inFlight++;
    this.#alonePlants = ahead === 0 ? this.#alonePlants + 1 : 0;
    const isOneAtATime = this.#alonePlants > ALONE_PLANTS_MIN;
    const { promise, resolve: settle } = Promise.withResolvers<WriteResult | NotConfirmed>();
    this.#queue.push({
      plant,
      // The checksum is computed before the plant waits, so it covers the queue and the engine.
      // Nothing compares it before the insert: whoever reads the row finds the damage.
      contentChecksum: contentChecksum(plant),
      recordedBy,
      ifRevision,
      origin,
      queuedAt,
      ahead,
      textLength,
      settle,
    });
    if (isOneAtATime) {
      this.#dispatch();
      this.#engine.awaitCommit?.();
    } else if (!this.#isDispatchScheduled) {
      this.#isDispatchScheduled = true;
      this.#clock.nextIteration(() => this.#dispatch());
    }
    return promise;
  }

  /** Whether the queue has no room for a plant with a text of this length. */
  #isFull(textLength: number): boolean {
    const { length } = this.#queue;
    return (
      this.#inFlight >= this.#inFlightLimit.plants ||
      length >= QUEUE_PLANTS_MAX ||
      (length > 0 && this.#queuedTextLength + textLength > QUEUE_TEXT_LENGTH_MAX)
    );
  }

  close(): Promise<void> {
    this.#closed ??= Promise.withResolvers();
    this.#resolveCloseIfIdle();
    return this.#closed.promise;
  }

  #dispatch(): void {
    this.#isDispatchScheduled = false;
    while (this.#isBatchDue()) {
      const batch = this.#takeBatch();
      this.#lastBatchPlants = batch.length;
      this.#batchesInFlight++;
      this.#engine.commit(batch).then(
        results => this.#batchEnded(batch, results),
        () => this.#batchFailed(batch),
      );
    }
  }

  /** Whether to make a batch now. A small batch beside one in flight would waste a flush. */
  #isBatchDue(): boolean {
    if (this.#batchesInFlight >= this.#engine.commitsInFlightMax) return false;
    const plantsMin = this.#batchesInFlight === 0 ? 1 : this.#lastBatchPlants;
    return this.#idsInFlight?.hasFree(this.#queue, plantsMin) ?? this.#queue.length >= plantsMin;
  }

  #takeBatch(): QueuedPlant[] {
    const batch: QueuedPlant[] = [];
    /** Plants before the end of the batch that stay queued. */
    const heldBack: QueuedPlant[] = [];
    const addIfFits = batchLimiter();
    let index = 0;
    for (; index < this.#queue.length; index++) {
      const next = this.#queue[index]!;
      const { id } = next.plant;
      if (this.#idsInFlight?.mustWait(id)) {
        heldBack.push(next);
        continue;
      }
      if (!addIfFits(next.textLength)) break;
      this.#queuedTextLength -= next.textLength;
      this.#idsInFlight?.add(id);
      batch.push(next);
    }
    this.#queue.splice(0, index, ...heldBack);
    this.#idsInFlight?.batchMade();
    return batch;
  }

  #removeInFlight(batch: QueuedPlant[]): void {
    this.#batchesInFlight--;
    this.#inFlight -= batch.length;
    this.#idsInFlight?.batchEnded(batch);
  }

  #batchEnded(batch: QueuedPlant[], results: WriteResult[]): void {
    this.#removeInFlight(batch);
    const { ahead, queuedAt } = batch.at(-1)!;
    this.#inFlightLimit.update(ahead, this.#clock.now() - queuedAt);
    // The next batch starts first, so the engine works while the callers handle their results.
    this.#dispatch();
    for (const [index, queued] of batch.entries()) queued.settle(results[index]!);
    this.#resolveCloseIfIdle();
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
