import {
  BATCH_PLANTS_MAX,
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
  PlantWriter,
  StorageEngine,
  WriteResult,
} from './plant-store.ts';

export type CommittingEngine = Pick<StorageEngine, 'commit' | 'commitsInFlightMax'>;

/** Told when the store stops or starts confirming, once for each change. */
interface StoreObserver {
  failed(cause: unknown): void;
  recovered(): void;
}

interface Waiting extends PlantWrite {
  queuedAt: number;
  /** Plants that were queued or in a batch at that moment. */
  ahead: number;
  textLength: number;
  settle: (result: WriteResult | NotConfirmed) => void;
}

/**
 * Group commit: many plants share one commit, so durability costs each a fraction of a disk flush.
 *
 * | a plant is | event | it becomes | its caller is told |
 * | --- | --- | --- | --- |
 * | new | `keep`; there is room | queued | |
 * | new | `keep`; the queue is full, or at the rate of the last batches the plant would wait too long | settled | `busy` |
 * | new | `keep` after `close` | settled | `shuttingDown` |
 * | queued | `dispatch` makes a batch | in a batch | |
 * | queued | a batch fails, and the plant has waited long | settled | `storeUnavailable` |
 * | in a batch | the engine answers | settled | its own result |
 * | in a batch | the engine fails | settled | `storeUnavailable` |
 *
 * `dispatch` alone makes batches: one when plants are queued and the engine has none, and a further one, up to as many as
 * the engine takes, when as many plants wait as the last batch had. It runs when a batch ends, and at the end of the
 * event-loop iteration in which a plant came in. So all plants that arrive together share a batch, and a lone plant waits
 * for nothing.
 *
 * After a failure nothing is written again here, because the engine cannot know whether the commit became durable: the
 * client sends again, which is harmless. The plants that stay queued go into the next batch, and so the service finds out
 * by itself that the fault has ended. `close` settles when no plant is queued or in a batch.
 */
export class GroupCommit implements PlantWriter {
  readonly #engine: CommittingEngine;
  readonly #observer: StoreObserver;
  readonly #queue: Waiting[] = [];
  readonly #now: () => number;
  #queueTextLength = 0;
  /** Plants that are queued or in a batch, and how many may be: see {@link #updateRate}. */
  #inFlight = 0;
  #inFlightMax = Number.POSITIVE_INFINITY;
  #batchesInFlight = 0;
  #lastBatchPlants = 0;
  #dispatchIsDue = false;
  #failing = false;
  #closed: PromiseWithResolvers<void> | undefined;

  /** @param now milliseconds on a monotonic clock */
  constructor(engine: CommittingEngine, observer: StoreObserver, now = () => performance.now()) {
    this.#engine = engine;
    this.#observer = observer;
    this.#now = now;
  }

  get statistics(): CommitStatistics {
    return {
      plantsInFlight: this.#inFlight,
      plantsInFlightMax: Math.min(Math.floor(this.#inFlightMax), QUEUE_PLANTS_MAX),
      batchesInFlight: this.#batchesInFlight,
      isCommitFailing: this.#failing,
    };
  }

  write({ plant, recordedBy }: PlantWrite): Promise<WriteResult | NotConfirmed> {
    const textLength = plant.name.length + (plant.tag?.length ?? 0);
    if (this.#closed !== undefined) return Promise.resolve({ rejected: 'shuttingDown' });
    if (
      this.#inFlight >= this.#inFlightMax ||
      this.#queue.length >= QUEUE_PLANTS_MAX ||
      this.#queueTextLength + textLength > QUEUE_TEXT_LENGTH_MAX
    ) {
      return Promise.resolve({ rejected: 'busy' });
    }
    this.#queueTextLength += textLength;
    if (!this.#dispatchIsDue) {
      this.#dispatchIsDue = true;
      setImmediate(() => this.#dispatch());
    }
    const queuedAt = this.#now();
    const ahead = this.#inFlight++;
    return new Promise(settle =>
      this.#queue.push({ plant, recordedBy, queuedAt, ahead, textLength, settle }),
    );
  }

  /** Settles when every plant taken so far is settled; further ones are refused. */
  close(): Promise<void> {
    this.#closed ??= Promise.withResolvers();
    this.#settleClose();
    return this.#closed.promise;
  }

  #dispatch(): void {
    this.#dispatchIsDue = false;
    while (this.#batchIsDue) {
      const batch = this.#takeBatch();
      this.#lastBatchPlants = batch.length;
      this.#batchesInFlight++;
      this.#engine.commit(batch).then(
        results => this.#batchEnded(batch, results),
        cause => this.#batchFailed(batch, cause),
      );
    }
  }

  /** Beside a batch in flight the next is as large as it, or waits for its end: small ones would share no flush. */
  get #batchIsDue(): boolean {
    if (this.#batchesInFlight === 0) return this.#queue.length > 0;
    return (
      this.#batchesInFlight < this.#engine.commitsInFlightMax && this.#queue.length >= this.#lastBatchPlants
    );
  }

  #takeBatch(): Waiting[] {
    let count = 0;
    let textLength = 0;
    while (count < this.#queue.length && count < BATCH_PLANTS_MAX) {
      const next = this.#queue[count]!.textLength;
      if (count > 0 && textLength + next > BATCH_TEXT_LENGTH_MAX) break;
      textLength += next;
      count++;
    }
    this.#queueTextLength -= textLength;
    return this.#queue.splice(0, count);
  }

  #batchEnded(batch: Waiting[], results: WriteResult[]): void {
    this.#batchesInFlight--;
    this.#inFlight -= batch.length;
    this.#updateRate(batch.at(-1)!);
    if (this.#failing) {
      this.#failing = false;
      this.#observer.recovered();
    }
    // The next batch first: the engine works on it while these callers get their answers.
    this.#dispatch();
    for (const [index, waiting] of batch.entries()) waiting.settle(results[index]!);
    this.#settleClose();
  }

  /**
   * How many plants were ahead of one, and how long it waited, tells how many may be under way for the next one to wait no
   * longer than it should (Little's law). Only a long queue shows what the engine can do.
   */
  #updateRate({ ahead, queuedAt }: Waiting): void {
    if (ahead < IN_FLIGHT_PLANTS_MIN / 2) return;
    const waitedMs = this.#now() - queuedAt;
    this.#inFlightMax = Math.max((ahead * QUEUE_TIME_MAX_MS) / waitedMs, IN_FLIGHT_PLANTS_MIN);
  }

  #batchFailed(batch: Waiting[], cause: unknown): void {
    this.#batchesInFlight--;
    this.#inFlight -= batch.length;
    if (!this.#failing) {
      this.#failing = true;
      this.#observer.failed(cause);
    }
    for (const waiting of [...batch, ...this.#takeLongQueued()]) {
      waiting.settle({ rejected: 'storeUnavailable' });
    }
    this.#dispatch();
    this.#settleClose();
  }

  #takeLongQueued(): Waiting[] {
    const since = this.#now() - FAILING_QUEUE_TIMEOUT_MS;
    const first = this.#queue.findIndex(({ queuedAt }) => queuedAt > since);
    const taken = this.#queue.splice(0, first === -1 ? this.#queue.length : first);
    this.#inFlight -= taken.length;
    for (const { textLength } of taken) this.#queueTextLength -= textLength;
    return taken;
  }

  #settleClose(): void {
    if (this.#queue.length === 0 && this.#batchesInFlight === 0) this.#closed?.resolve();
  }
}
