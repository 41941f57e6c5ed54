import type { CommitStatistics, PlantQueue } from '../../../core/commit/plant-commits.ts';

/** The queue of one worker. */
interface WorkerQueue {
  queue: PlantQueue;
  /** Plants whose `write` has not returned. The queue itself counts a plant until it is settled. */
  writes: number;
}

/**
 * The queues of Citus. Each worker has its own, so that a batch has plants of one worker, and the
 * plants of other workers do not become `busy` while a worker is away.
 *
 * The shard of an id may move to another worker at any time. While plants of the id are in a queue,
 * further plants of the id join this queue, so that all keep their order.
 *
 * @param workerOf the name of the worker that stores an id now; undefined for the coordinator
 * @param isWorker whether a worker of this name still stores plants
 */
export function workerQueues(
  workerOf: (id: bigint) => string | undefined,
  isWorker: (name: string) => boolean,
  openQueue: () => PlantQueue,
): PlantQueue {
  const queues = new Map<string | undefined, WorkerQueue>();
  const idsInFlight = new Map<bigint, { worker: WorkerQueue; plants: number }>();
  let isClosed = false;
  const queueOf = (id: bigint): WorkerQueue => {
    const name = workerOf(id);
    const existing = queues.get(name);
    if (existing !== undefined) return existing;
    // The new worker may replace another one, whose empty queue is not needed any more. A queue with
    // a write stays, because further plants of its id join it, and `close` must wait for them. That of
    // a worker in use stays, because it has measured how many plants may be in flight.
    for (const [other, { writes }] of queues) {
      const isInUse = other !== undefined && isWorker(other);
      if (writes === 0 && !isInUse) queues.delete(other);
    }
    const opened = { queue: openQueue(), writes: 0 };
    queues.set(name, opened);
    return opened;
  };
  return {
    get statistics(): CommitStatistics {
      const sum = { plantsInFlight: 0, plantsInFlightMax: 0, isFull: false, batchesInFlight: 0 };
      for (const { statistics } of queues.values().map(({ queue }) => queue)) {
        sum.plantsInFlight += statistics.plantsInFlight;
        sum.plantsInFlightMax += statistics.plantsInFlightMax;
        sum.isFull ||= statistics.isFull;
        sum.batchesInFlight += statistics.batchesInFlight;
      }
      return sum;
    },
    async write(write) {
      if (isClosed) return { kind: 'notConfirmed', error: 'shuttingDown' };
      const { id } = write.plant;
      const inFlight = idsInFlight.get(id) ?? { worker: queueOf(id), plants: 0 };
      const { worker } = inFlight;
      idsInFlight.set(id, inFlight);
      inFlight.plants++;
      worker.writes++;
      const result = await worker.queue.write(write);
      worker.writes--;
      if (--inFlight.plants === 0) idsInFlight.delete(id);
      return result;
    },
    async close() {
      isClosed = true;
      await Promise.all(queues.values().map(({ queue }) => queue.close()));
    },
  };
}
