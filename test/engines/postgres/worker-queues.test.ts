import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextIteration } from 'node:timers/promises';
import { GroupCommit, QUEUE_PLANTS_MAX } from '../../../src/core/commit/group-commit.ts';
import type { PlantQueue, WriteResult } from '../../../src/core/commit/plant-commits.ts';
import { workerQueues } from '../../../src/engines/postgres/citus/worker-queues.ts';
import { plantWrite } from '../../harness/plant-write.ts';

/** Queues whose commits end when the test ends them. The worker of an id changes at any time. */
class Cluster {
  workerOf = (_id: bigint): string => 'w1';
  /** The names of all workers; by default that of the last plant is the only one. */
  workers: readonly string[] = [];
  opened = 0;
  readonly batches: { names: string[]; end: () => void }[] = [];
  /** Called once, between the end of a plant in its queue and the end of its write. */
  onSettled: (() => void) | undefined;
  readonly queues = workerQueues(
    id => this.workerOf(id),
    name => this.workers.includes(name),
    () => this.#openQueue(),
  );

  #openQueue(): PlantQueue {
    this.opened++;
    const queue = new GroupCommit({
      commitsInFlightMax: 1,
      isSequential: false,
      commit: async writes => {
        const { promise, resolve } = Promise.withResolvers<void>();
        this.batches.push({ names: writes.map(({ plant }) => plant.name), end: resolve });
        await promise;
        return writes.map((): WriteResult => ({ kind: 'confirmed', outcome: 'created', revision: 1 }));
      },
    });
    return {
      get statistics() {
        return queue.statistics;
      },
      write: async write => {
        const result = await queue.write(write);
        const call = this.onSettled;
        this.onSettled = undefined;
        call?.();
        return result;
      },
      close: () => queue.close(),
    };
  }

  write(id: bigint, name: string) {
    return this.queues.write(plantWrite({ id, name }, 1));
  }

  async inFlight(): Promise<string[]> {
    await nextIteration();
    return this.batches.flatMap(({ names }) => names);
  }

  endAll(): void {
    for (const { end } of this.batches.splice(0)) end();
  }
}

test('a plant follows the plants of its id that are in flight, also after its shard has moved', async () => {
  const cluster = new Cluster();
  const first = cluster.write(1n, 'first');
  assert.deepEqual(await cluster.inFlight(), ['first']);
  cluster.workerOf = () => 'w2';
  const others = [cluster.write(1n, 'second'), cluster.write(2n, 'other')];
  assert.deepEqual(await cluster.inFlight(), ['first', 'other'], 'the second one waits for the first');
  cluster.endAll();
  await first;
  assert.deepEqual(await cluster.inFlight(), ['second']);
  cluster.endAll();
  await Promise.all(others);
});

test('workers that come and go leave no queue behind', async () => {
  const cluster = new Cluster();
  assert.ok(!cluster.queues.statistics.isFull, 'without a queue, there is room for the first plant');
  for (let name = 0; name < 20; name++) {
    cluster.workerOf = () => String(name);
    const writing = cluster.write(1n, 'oak');
    await cluster.inFlight();
    cluster.endAll();
    assert.deepEqual(await writing, { kind: 'confirmed', outcome: 'created', revision: 1 });
  }
  const all = { plantsInFlight: 0, plantsInFlightMax: QUEUE_PLANTS_MAX, isFull: false, batchesInFlight: 0 };
  assert.deepEqual(cluster.queues.statistics, all, 'one queue');
  const burst = Array.from({ length: QUEUE_PLANTS_MAX }, (_, id) => cluster.write(BigInt(id), 'oak'));
  assert.deepEqual(await cluster.write(-1n, 'oak'), { kind: 'notConfirmed', error: 'busy' });
  assert.ok(cluster.queues.statistics.isFull);
  cluster.workerOf = () => 'another';
  const other = cluster.write(-1n, 'elm');
  assert.ok((await cluster.inFlight()).includes('elm'), 'a full queue delays no plant of another worker');
  const closing = cluster.queues.close();
  assert.deepEqual(await cluster.write(-2n, 'oak'), { kind: 'notConfirmed', error: 'shuttingDown' });
  while ((await cluster.inFlight()).length > 0) cluster.endAll();
  await closing;
  for (const { kind } of await Promise.all([...burst, other])) assert.equal(kind, 'confirmed');
});

test('each worker in use keeps its queue while plants of others arrive', async () => {
  const cluster = new Cluster();
  cluster.workers = ['w0', 'w1'];
  cluster.workerOf = id => `w${id % 2n}`;
  for (let id = 0n; id < 10n; id++) {
    const writing = cluster.write(id, 'oak');
    await cluster.inFlight();
    cluster.endAll();
    await writing;
  }
  assert.equal(cluster.opened, 2);
});

test('a plant that follows a settled one of its id is in a queue that `close` waits for', async () => {
  const cluster = new Cluster();
  const writes = [cluster.write(1n, 'first')];
  cluster.onSettled = () => {
    cluster.workerOf = id => (id === 1n ? 'w1' : 'w2');
    writes.push(cluster.write(2n, 'of another worker'), cluster.write(1n, 'second'));
  };
  await cluster.inFlight();
  cluster.endAll();
  await writes[0];
  assert.deepEqual((await cluster.inFlight()).sort(), ['of another worker', 'second']);
  const closing = cluster.queues.close().then(() => 'closed');
  const batches = cluster.batches.splice(0).sort((one, two) => (one.names[0]! < two.names[0]! ? -1 : 1));
  for (const { end } of batches) {
    assert.equal(await Promise.race([closing, nextIteration('open')]), 'open', 'a plant is in flight');
    end();
  }
  assert.equal(await closing, 'closed');
  for (const { kind } of await Promise.all(writes)) assert.equal(kind, 'confirmed');
});
