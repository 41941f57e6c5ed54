import type { GroupCommit } from '../group-commit.ts';
import type { CommitStatistics, NotConfirmed, PlantQueue, PlantWrite, WriteResult } from '../plant-store.ts';

interface IdInFlight {
  queue: GroupCommit;
  plants: number;
}

/**
 * The queues of Citus, one for each worker. So a batch has plants of one worker, and a worker that
 * is away makes no plant of another one `busy`.
 *
 * The shard of an id may move to another worker at any time. While plants of the id are in a queue,
 * further ones follow them there. So the later plant of a connection never becomes the earlier
 * revision.
 */
export class WorkerQueues implements PlantQueue {
  readonly #workerOf: (id: bigint) => string;
  readonly #openQueue: () => GroupCommit;
  readonly #queues = new Map<string, GroupCommit>();
  readonly #idsInFlight = new Map<bigint, IdInFlight>();
  #isClosed = false;

  /** @param workerOf the name of the worker that stores an id now */
  constructor(workerOf: (id: bigint) => string, openQueue: () => GroupCommit) {
    this.#workerOf = workerOf;
    this.#openQueue = openQueue;
  }

  get statistics(): CommitStatistics {
    const sum = { plantsInFlight: 0, plantsInFlightMax: 0, batchesInFlight: 0 };
    for (const { statistics } of this.#queues.values()) {
      sum.plantsInFlight += statistics.plantsInFlight;
      sum.plantsInFlightMax += statistics.plantsInFlightMax;
      sum.batchesInFlight += statistics.batchesInFlight;
    }
    return sum;
  }

  async write(write: PlantWrite): Promise<WriteResult | NotConfirmed> {
    if (this.#isClosed) return { rejected: 'shuttingDown' };
    const { id } = write.plant;
    const inFlight = this.#idsInFlight.get(id) ?? { queue: this.#queueOf(id), plants: 0 };
    this.#idsInFlight.set(id, inFlight);
    inFlight.plants++;
    const result = await inFlight.queue.write(write);
    if (--inFlight.plants === 0) this.#idsInFlight.delete(id);
    return result;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#queues.values()].map(queue => queue.close()));
  }

  #queueOf(id: bigint): GroupCommit {
    const worker = this.#workerOf(id);
    const existing = this.#queues.get(worker);
    if (existing !== undefined) return existing;
    // The new worker may replace another one. An empty queue is opened again when it is needed.
    for (const [name, { statistics }] of this.#queues) {
      if (statistics.plantsInFlight === 0) this.#queues.delete(name);
    }
    const queue = this.#openQueue();
    this.#queues.set(worker, queue);
    return queue;
  }
}
