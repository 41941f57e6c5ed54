import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextIteration } from 'node:timers/promises';
import { GroupCommit, QUEUE_PLANTS_MAX } from '../../../src/core/commit/group-commit.ts';
import type { WriteResult } from '../../../src/core/commit/plant-commits.ts';
import { workerQueues } from '../../../src/engines/postgres/citus/worker-queues.ts';
import { plantWrite } from '../../harness/plant-write.ts';

/** Queues whose commits end when the test ends them. The worker of an id changes at any time. */
class Cluster {
  workerOf = (_id: bigint): string => 'w1';
  readonly batches: { names: string[]; end: () => void }[] = [];
  readonly queues = workerQueues(
    id => this.workerOf(id),
    () =>
      new GroupCommit({
        commitsInFlightMax: 1,
        isSequential: false,
        commit: async writes => {
          const { promise, resolve } = Promise.withResolvers<void>();
          this.batches.push({ names: writes.map(({ plant }) => plant.name), end: resolve });
          await promise;
          return writes.map((): WriteResult => ({ kind: 'confirmed', outcome: 'created', revision: 1 }));
        },
      }),
  );

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
