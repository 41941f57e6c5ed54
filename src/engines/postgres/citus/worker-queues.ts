import type { CommitStatistics, PlantQueue } from '../../../core/commit/plant-commits.ts';

/**
 * The queues of Citus. Each worker has its own, so that a batch has plants of one worker, and the
 * plants of other workers do not become `busy` while a worker is away.
 *
 * The shard of an id may move to another worker at any time. While plants of the id are in a queue,
 * further plants of the id join this queue, so that all keep their order.
 *
 * @param workerOf the name of the worker that stores an id now; undefined for the coordinator
 */
export function workerQueues(
  workerOf: (id: bigint) => string | undefined,
  openQueue: () => PlantQueue,
): PlantQueue {
  const queues = new Map<string | undefined, PlantQueue>();
  const idsInFlight = new Map<bigint, { queue: PlantQueue; plants: number }>();
  let isClosed = false;
  const queueOf = (id: bigint): PlantQueue => {
    const worker = workerOf(id);
    const existing = queues.get(worker);
    if (existing !== undefined) return existing;
    // The new worker may replace another one, whose empty queue is not needed any more.
    for (const [name, { statistics }] of queues) if (statistics.plantsInFlight === 0) queues.delete(name);
    const queue = openQueue();
    queues.set(worker, queue);
    return queue;
  };
  return {
    get statistics(): CommitStatistics {
      const sum = { plantsInFlight: 0, plantsInFlightMax: 0, isFull: false, batchesInFlight: 0 };
      for (const { statistics } of queues.values()) {
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
      const inFlight = idsInFlight.get(id) ?? { queue: queueOf(id), plants: 0 };
      idsInFlight.set(id, inFlight);
      inFlight.plants++;
      const result = await inFlight.queue.write(write);
      if (--inFlight.plants === 0) idsInFlight.delete(id);
      return result;
    },
    async close() {
      isClosed = true;
      await Promise.all([...queues.values()].map(queue => queue.close()));
    },
  };
}
