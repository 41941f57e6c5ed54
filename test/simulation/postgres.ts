import assert from 'node:assert/strict';
import { revisionChecksum } from '../../src/core/commit/checksum.ts';
import { GroupCommit } from '../../src/core/commit/group-commit.ts';
import type {
  PlantQueue,
  PlantWrite,
  RepeatedIdRule,
  WriteResult,
} from '../../src/core/commit/plant-commits.ts';
import { StoreInternalError } from '../../src/core/commit/store-errors.ts';
import type { NewPlant } from '../../src/core/contract/plant.ts';
import { BatchCommit } from '../../src/engines/postgres/batch/batch-commit.ts';
import { CopyChoice } from '../../src/engines/postgres/batch/copy-choice.ts';
import { rowOf } from '../../src/engines/postgres/batch/revision-statements.ts';
import { OPERATION_TIMEOUT_MS } from '../../src/engines/postgres/connection.ts';
import { ConnectionPool } from '../../src/engines/postgres/connections/connection-pool.ts';
import { HostSearch } from '../../src/engines/postgres/connections/host-search.ts';
import type { HostAddress, PostgresAddress } from '../../src/engines/postgres/postgres-url.ts';
import type { PlantServers, StoreConnection } from '../../src/engines/postgres/topology/topology.ts';
import { revisionOf } from '../../src/engines/tables/revision-rows.ts';
import type { HistoryRevision } from '../harness/linearizable.ts';
import { ModelConnection } from './model-connection.ts';
import { ModelPostgres } from './model-postgres.ts';
import { Trouble } from './model-trouble.ts';
import { count, type Happened, type Part } from './part.ts';
import { Scheduler } from './scheduler.ts';
import { SentPlants } from './sent-plants.ts';

const RUN_MS = 3_000;
/** After the trouble. Then clients have noticed the end of every connection. */
const HEAL_MS = 12_000;
/** A batch in flight, then one that was started before it ended, then the own batch. */
const CALL_MAX_MS = 3 * OPERATION_TIMEOUT_MS + 500;
/** A new plant is confirmed within this time by a healthy database. */
const HEALTHY_CALL_MAX_MS = 1_000;

/** One service: the write path as `PostgresEngine` assembles it. */
class Instance {
  readonly number: number;
  readonly connectionsMax: number;
  readonly pool: ConnectionPool;
  readonly #model: ModelPostgres;
  readonly #rule: RepeatedIdRule;
  readonly #copyChoice = new CopyChoice();
  readonly #search: HostSearch;
  /** Pools of further connections to the host of `pool`. */
  readonly #otherPools: ConnectionPool[] = [];
  servers!: PlantServers;
  queue!: PlantQueue;
  callsInFlight = 0;

  constructor(model: ModelPostgres, rule: RepeatedIdRule, number: number) {
    this.number = number;
    this.#model = model;
    this.#rule = rule;
    this.connectionsMax = model.scheduler.pick(1, 2, 3);
    this.#search = this.#searchOf(model.pairs[0]!.hosts, opened => opened.topology.prepare(opened, 'write'));
    this.pool = this.#poolOf(this.#search, this.connectionsMax + 2);
  }

  get connections(): number {
    const others = this.#otherPools.reduce((sum, pool) => sum + pool.connections, 0);
    return this.pool.connections + others + this.servers.connections;
  }

  async open(): Promise<void> {
    const { scheduler } = this.#model;
    this.servers = await this.pool.use(connection =>
      connection.topology.openServers(connection, {
        address: { citus: 'workers' } as PostgresAddress,
        batchesInFlightMax: this.connectionsMax,
        pool: this.pool,
        openPool: connectionsMax => {
          const pool = this.#poolOf(this.#search, connectionsMax);
          this.#otherPools.push(pool);
          return pool;
        },
        openPoolOf: (host, prepare, connectionsMax) =>
          this.#poolOf(this.#searchOf([host], prepare), connectionsMax),
        clock: scheduler,
      }),
    );
    const commit = (writes: readonly PlantWrite[]) => this.#commit(writes);
    this.queue = this.servers.openQueue(
      commitsInFlightMax => new GroupCommit({ commit, commitsInFlightMax, isSequential: false }, scheduler),
    );
  }

  async close(): Promise<void> {
    await Promise.all([this.pool.close(), this.servers.close()]);
  }

  async #commit(writes: readonly PlantWrite[]): Promise<WriteResult[]> {
    const batch = new BatchCommit(writes, this.#rule, this.#copyChoice, this.#model.scheduler);
    try {
      return await this.servers.use(writes[0]!.plant.id, connection => batch.run(connection));
    } catch (error) {
      if (error instanceof StoreInternalError) this.#model.violation ??= error;
      throw error;
    }
  }

  #searchOf(hosts: HostAddress[], prepare: (opened: StoreConnection) => Promise<void>): HostSearch {
    const address = { hosts } as PostgresAddress;
    return new HostSearch(address, prepare, this.#model.scheduler, (_, host, timeoutMs, signal) =>
      ModelConnection.open(this.#model, host, timeoutMs, signal),
    );
  }

  #poolOf(search: HostSearch, connectionsMax: number): ConnectionPool {
    const { scheduler } = this.#model;
    return new ConnectionPool(search, connectionsMax, scheduler, () => scheduler.random(1_000) / 1_000);
  }
}

/** Clients of one to three services on one database, and what must be true of their plants. */
class Simulation {
  readonly #scheduler: Scheduler;
  readonly #happened: Happened;
  readonly #model: ModelPostgres;
  readonly #trouble: Trouble;
  readonly #rule: RepeatedIdRule;
  readonly #sent: SentPlants;
  readonly #instances: Instance[];
  readonly #ids: bigint[];
  readonly #startMs: number;
  /** After this time the clients send other ids. */
  readonly #idsMs: number;
  readonly #namesCount: number;
  readonly #damagedId: bigint | undefined;
  #isOver = false;

  constructor(seed: number, happened: Happened) {
    const scheduler = new Scheduler(seed);
    this.#scheduler = scheduler;
    this.#happened = happened;
    this.#model = new ModelPostgres(scheduler, happened);
    this.#trouble = new Trouble(this.#model);
    this.#rule = scheduler.pick('revise', 'revise', 'reject');
    this.#sent = new SentPlants(scheduler);
    this.#instances = Array.from(
      { length: 1 + scheduler.random(3) },
      (_, number) => new Instance(this.#model, this.#rule, number),
    );
    this.#ids = Array.from({ length: 1 + scheduler.random(5) }, (_, number) => BigInt(number * 7 - 3));
    this.#startMs = scheduler.now();
    this.#idsMs = scheduler.pick(500, 2 * RUN_MS);
    this.#namesCount = scheduler.pick(1, 2, 2, 4, 1_000);
    this.#damagedId = scheduler.happens(5) ? this.#ids[0] : undefined;
  }

  async run(): Promise<number> {
    const scheduler = this.#scheduler;
    if (this.#damagedId !== undefined) this.#storeDamaged(this.#damagedId);
    let hasEnded = false;
    const running = scheduler.start(() => this.#story());
    void running.then(() => (hasEnded = true));
    await scheduler.runUntil(scheduler.now() + RUN_MS + 2 * HEAL_MS + CALL_MAX_MS, () => this.#check());
    assert.ok(hasEnded && this.#sent.open === 0, 'something waits for ever');
    return scheduler.steps;
  }

  async #story(): Promise<void> {
    const scheduler = this.#scheduler;
    await Promise.all(this.#instances.map(instance => instance.open()));
    const tasks = this.#instances.flatMap(instance => [
      ...Array.from({ length: 1 + scheduler.random(2) }, () => this.#repeat(600, () => this.#send(instance))),
      this.#repeat(1_500, () => this.#checkReadiness(instance)),
    ]);
    tasks.push(this.#repeat(500, async () => this.#trouble.begin()));
    await scheduler.pause(RUN_MS);
    this.#isOver = true;
    const closed = scheduler.happens(30) ? this.#instances.pop() : undefined;
    if (closed !== undefined) await this.#closeQueue(closed);
    await Promise.all(tasks);
    this.#trouble.endAll();
    await scheduler.pause(HEAL_MS);
    assert.deepEqual(this.#model.tableLock.waitingModes, [], 'a command waits for ever');
    await Promise.all(this.#instances.map(instance => this.#checkRecovery(instance)));
    if (closed !== undefined) this.#instances.push(closed);
    // Until the connections to a worker without a shard are closed.
    await scheduler.pause(100);
    const connections = this.#instances.reduce((sum, instance) => sum + instance.connections, 0);
    assert.ok(this.#model.openConnections <= connections, 'a connection is open that no pool has');
    await Promise.all(this.#instances.map(instance => this.#closeQueue(instance)));
    await Promise.all(this.#instances.map(instance => instance.close()));
    await scheduler.pause(HEAL_MS);
    assert.equal(this.#model.openConnections, 0, 'a connection stays open');
    this.#sent.check(this.#finalRevisions());
  }

  #repeat(pauseMsMax: number, action: () => Promise<void>): Promise<void> {
    return this.#scheduler.repeat(pauseMsMax, () => this.#isOver, action);
  }

  /** One client: it sends some plants, without waiting between, and waits for all results. */
  async #send(instance: Instance): Promise<void> {
    const plants = Array.from({ length: this.#scheduler.pick(1, 1, 2, 4, 8) }, () => this.#newPlant());
    await Promise.all(plants.map(plant => this.#write(instance, plant, this.#newCondition())));
  }

  #newPlant(): NewPlant {
    const period = Math.floor((this.#scheduler.now() - this.#startMs) / this.#idsMs);
    const plant = {
      id: this.#scheduler.pick(...this.#ids) + BigInt(period * 100),
      name: `name ${this.#scheduler.random(this.#namesCount)}`,
    };
    return this.#scheduler.happens(20) ? { ...plant, tag: 'tag' } : plant;
  }

  #newCondition(): number | undefined {
    return this.#scheduler.pick(undefined, undefined, undefined, 0, 0, 1, 2, 3);
  }

  /** @returns whether the plant is confirmed */
  async #write(instance: Instance, plant: NewPlant, ifRevision?: number): Promise<boolean> {
    const sinceMs = this.#scheduler.now();
    const sent = this.#sent.send(plant, instance.number, instance.number, ifRevision);
    instance.callsInFlight++;
    const write = { plant, recordedBy: instance.number, ifRevision };
    const result = await instance.queue.write(write);
    instance.callsInFlight--;
    this.#sent.settle(sent, result);
    count(this.#happened, result.kind === 'confirmed' ? result.outcome : result.error);
    const tookMs = this.#scheduler.now() - sinceMs;
    assert.ok(tookMs <= CALL_MAX_MS, `a call took ${tookMs} ms`);
    if (result.kind !== 'confirmed') {
      if (result.error === 'damaged') assert.equal(plant.id, this.#damagedId);
      if (result.error === 'idTaken') assert.equal(this.#rule, 'reject');
      if (result.error !== 'plantChanged') return false;
      if (result.revision === 0)
        assert.ok(this.#model.hasConfirmedSince(plant.id, sinceMs), 'a missing plant is not confirmed');
      else
        assert.ok(
          this.#model.isDurable(plant.id, result.revision),
          'a result relies on a plant that is not durable',
        );
      return false;
    }
    assert.notEqual(plant.id, this.#damagedId);
    assert.ok(result.revision === 1 || this.#rule === 'revise', 'a plant is revised under the rule reject');
    assert.ok(this.#model.isDurable(plant.id, result.revision), 'a confirmed plant is not durable');
    return true;
  }

  async #checkReadiness(instance: Instance): Promise<void> {
    if (!this.#model.isCitus) return;
    await instance.servers.refresh().catch(() => {});
    await instance.servers.warnings().catch(() => {});
  }

  async #closeQueue(instance: Instance): Promise<void> {
    if (instance.callsInFlight > 0) count(this.#happened, 'a queue is closed with plants in flight');
    await instance.queue.close();
    await this.#scheduler.pause(0);
    assert.equal(instance.callsInFlight, 0, 'a queue is closed before its plants are settled');
    assert.equal(await this.#write(instance, this.#newPlant()), false, 'a closed queue takes a plant');
  }

  /** With a healthy database everything is idle, and new plants are confirmed soon. */
  async #checkRecovery(instance: Instance): Promise<void> {
    const { batchesInFlight } = instance.queue.statistics;
    assert.equal(batchesInFlight, 0);
    const sinceMs = this.#scheduler.now();
    const plants = [1, 2, 3].map(number => ({ id: BigInt(-10 * number - instance.number), name: 'new' }));
    const confirmed = await Promise.all(plants.map(plant => this.#write(instance, plant)));
    assert.ok(!confirmed.includes(false), 'a healthy database stores no plant');
    const tookMs = this.#scheduler.now() - sinceMs;
    assert.ok(tookMs <= HEALTHY_CALL_MAX_MS, `a healthy database takes ${tookMs} ms`);
    const { pool, connectionsMax } = instance;
    assert.ok(pool.connections <= connectionsMax + 2, 'there are too many connections');
  }

  #check(): void {
    this.#sent.checkResults();
    if (this.#model.violation !== undefined) throw this.#model.violation;
    for (const { queue, callsInFlight } of this.#instances) {
      if (queue === undefined) continue;
      assert.equal(queue.statistics.plantsInFlight, callsInFlight, 'the statistics miss a plant');
    }
  }

  #finalRevisions(): HistoryRevision[] {
    const ids = new Set(this.#model.pairs.flatMap(({ primary }) => [...primary.table.keys()]));
    const rows = [...ids].flatMap(id => this.#model.revisionsOf(id));
    return rows.map(({ cells, visibleAt }) => ({ ...revisionOf(cells), storedAt: visibleAt! }));
  }

  /** As after an error of a disk. */
  #storeDamaged(id: bigint): void {
    const plant = { id, name: 'damaged' };
    const numbers = { revision: 1, recordedAt: 0, recordedBy: 0 };
    const sent = this.#sent.send(plant, -1, numbers.recordedBy);
    const cells = rowOf({ plant, ...numbers, checksum: revisionChecksum(0n, numbers) });
    const { primary } = this.#model.pairOf(id);
    const rows = primary.append([{ id, revision: 1, cells, visibleAt: undefined }]);
    primary.standby!.log.push(rows);
    primary.show(rows);
    this.#sent.settle(sent, { kind: 'notConfirmed', error: 'storeUnavailable' });
  }
}

export const postgres: Part = {
  name: 'postgres',
  simulate: (seed, happened) => new Simulation(seed, happened).run(),
};
