import { type Clock, repeat } from '../../../core/clock.ts';
import type { PlantQueue } from '../../../core/commit/plant-commits.ts';
import { StorePartlyUnavailable, StoreUnavailable } from '../../../core/commit/store-errors.ts';
import type { Problem } from '../../../core/problem.ts';
import { confirmEverythingBefore } from '../batch/confirm-commits.ts';
import { OPERATION_TIMEOUT_MS } from '../connection.ts';
import { unavailable } from '../postgres-errors.ts';
import { type HostAddress, hostName } from '../postgres-url.ts';
import { durabilityWarnings } from '../schema/durability-warnings.ts';
import type { PlantServers, Pool, ServicePools, StoreConnection } from '../topology/topology.ts';
import { readShards, type Shards, workerOf } from './citus-shards.ts';
import { hiddenWorkerWarnings } from './hidden-workers.ts';
import { prepareServer } from './prepare-server.ts';
import { rejectDangerousTable } from './table-check.ts';
import { TABLE_LOCKS_MAX, TableLock, type Waiting } from './table-lock.ts';
import { workerQueues } from './worker-queues.ts';

/** A batch needs a map of the shards that was read within this time. */
export const SHARDS_AGE_MAX_MS = 1_000;
/** An instance without plants renews its lock at this interval, so that others get it soon. */
const LOCK_RENEWAL_INTERVAL_MS = 1_000;
/** Timeout for the renewal, also for its connection. Until then, batches may wait for the shards. */
const LOCK_RENEWAL_TIMEOUT_MS = 500;
/** The renewal waits so long for locks of others. */
const LOCK_RENEWAL_WAIT_MS = 100;
/** Timeout for the warnings of one worker, so that `/readyz` does not fail while it is away. */
const WORKER_CHECK_TIMEOUT_MS = 1_500;

/**
 * The workers of Citus, each with its own connections.
 *
 * Each batch has plants of one worker, and is written there as a local transaction, because this
 * needs neither a two-phase commit nor the coordinator. While a worker is away, only its plants
 * fail.
 *
 * When a shard has moved, its old worker passes statements on to the new worker. But Citus tells a
 * removed worker nothing about later moves, so that worker would use a table that Citus will drop.
 *
 * Therefore an instance begins no batch with a map of the shards older than `SHARDS_AGE_MAX_MS`.
 * The batch ends within `OPERATION_TIMEOUT_MS`. Citus drops the table of a moved shard after 15 s
 * or more (`citus.defer_shard_delete_interval`). This rule also stops an instance while the
 * coordinator is away, when the instance would not learn of revoked tokens.
 *
 * A batch also needs the {@link TableLock} of the coordinator, which every reading of the shards renews.
 * The new lock comes first. The old one is released when the batches that began with it have ended.
 *
 * | somebody waits for the table     | what the instance does                                       |
 * | -------------------------------- | ------------------------------------------------------------ |
 * | nobody                           | takes the new lock, and releases the old one                 |
 * | `undistribute_table`,            | keeps the old lock, and reads the shards with it, so the     |
 * | `alter_distributed_table`        | command waits until its own lock timeout                     |
 * | ALTER TABLE, CREATE INDEX and    | ends its batches, releases the lock, and queues behind the   |
 * | others, as a schema step does    | command, as an INSERT on a plain server does                 |
 *
 * The lock is lost when its connection ends. Then batches wait for a new one. A batch that was in
 * flight is confirmed only if the new lock is of the same table.
 */
export class CitusWorkers implements PlantServers {
  readonly #pools: ServicePools;
  readonly #coordinator: Pool;
  readonly #lockPool: Pool;
  /** The coordinator passes all plants on, since the workers cannot be reached from here. */
  readonly #areHidden: boolean;
  readonly #clock: Clock;
  readonly #workers = new Map<string, Pool>();
  /** The workers that have responded. */
  readonly #reached = new Set<string>();
  #shards: Shards = [];
  /** When the last reading of the shards began, on the monotonic clock. */
  #shardsReadAt = Number.NEGATIVE_INFINITY;
  #lock: TableLock | undefined;
  /** The lock before `#lock`. Batches may still use it. */
  #previousLock: TableLock | undefined;
  #waiting: Waiting = { kind: 'nothing' };
  #refreshing: Promise<void> | undefined;
  readonly #renewal: Disposable;

  constructor(shards: Shards, pools: ServicePools) {
    const { address, pool, openPool, clock } = pools;
    this.#pools = pools;
    this.#coordinator = pool;
    this.#lockPool = openPool(TABLE_LOCKS_MAX);
    this.#areHidden = address.citus === 'coordinator';
    this.#clock = clock;
    this.#useShards(shards);
    const renew = (): void => {
      if (clock.now() - this.#shardsReadAt < LOCK_RENEWAL_INTERVAL_MS) return;
      // Whoever needs the lock gets the error.
      void this.refresh().catch(() => {});
    };
    this.#renewal = repeat(clock, renew, LOCK_RENEWAL_INTERVAL_MS);
  }

  /** Number of connections to all workers. */
  get connections(): number {
    return this.#workers.values().reduce((sum, pool) => sum + pool.connections, 0);
  }

  /** A worker has one batch in flight, because a larger batch costs less for each plant. */
  openQueue(open: (commitsInFlightMax: number) => PlantQueue): PlantQueue {
    return workerQueues(
      id => this.#workerOf(id),
      name => this.#workers.has(name),
      () => open(1),
    );
  }

  /**
   * Runs an operation on the server that stores this id.
   *
   * @throws {StorePartlyUnavailable} if the worker does not work
   * @throws {StoreUnavailable} if the coordinator does not work
   */
  async use<T>(id: bigint, work: (connection: StoreConnection) => Promise<T>): Promise<T> {
    const deadline = this.#clock.now() + OPERATION_TIMEOUT_MS;
    const lock = await this.#enterLock(deadline);
    try {
      const result = await this.#useServerOf(id, work, deadline);
      if (!lock.isHeld) await this.#rejectOtherTable(lock, deadline);
      return result;
    } finally {
      lock.leave();
    }
  }

  /** Renews the lock, reads the shards, opens pools of new workers, and closes those of removed ones. */
  refresh(deadline = this.#clock.now() + OPERATION_TIMEOUT_MS): Promise<void> {
    // The batches of all workers share one reading of the shards.
    this.#refreshing ??= this.#refresh(deadline).finally(() => (this.#refreshing = undefined));
    return this.#refreshing;
  }

  /** Inspects all workers. @throws {StorePartlyUnavailable} when no worker can be used */
  async warnings(): Promise<Problem[]> {
    const failures: StorePartlyUnavailable[] = [];
    const checks = [...this.#workers].map(async ([name, pool]) => {
      try {
        const found = await pool.use(async connection => {
          await confirmEverythingBefore(connection);
          return await durabilityWarnings(connection, `the worker ${name}`);
        }, this.#clock.now() + WORKER_CHECK_TIMEOUT_MS);
        this.#reached.add(name);
        return found;
      } catch (cause) {
        const failure = this.#unreachable(name, cause);
        failures.push(failure);
        return [failure];
      }
    });
    const warnings: Problem[] = (await Promise.all(checks)).flat();
    if (failures.length > 0 && failures.length === checks.length) throw failures[0];
    if (this.#areHidden) warnings.push(...(await this.#hiddenWarnings()));
    if (this.#waiting.kind === 'conversion') warnings.push(CONVERSION_WAITS);
    return warnings;
  }

  /** The coordinator waits long for a worker that is away, but passes on the plants of the others. */
  async #hiddenWarnings(): Promise<Problem[]> {
    const deadline = this.#clock.now() + WORKER_CHECK_TIMEOUT_MS;
    return await this.#coordinator.use(hiddenWorkerWarnings, deadline).catch(cause => {
      const { fault, advice } = unavailable(cause);
      return [{ fault: `the workers cannot be inspected: ${fault}`, advice }];
    });
  }

  async close(): Promise<void> {
    this.#renewal[Symbol.dispose]();
    const closing = [this.#lockPool, ...this.#workers.values()].map(pool => pool.close());
    await this.#refreshing?.catch(() => {});
    this.#lock?.retire();
    await Promise.all(closing);
  }

  /** The name of the worker that stores this id; undefined if the coordinator stores it. */
  #workerOf(id: bigint): string | undefined {
    const worker = workerOf(this.#shards, id);
    return worker && hostName(worker);
  }

  async #useServerOf<T>(
    id: bigint,
    work: (connection: StoreConnection) => Promise<T>,
    deadline: number,
  ): Promise<T> {
    const name = this.#workerOf(id);
    const pool = name === undefined ? undefined : this.#workers.get(name);
    if (name === undefined || pool === undefined) return await this.#coordinator.use(work, deadline);
    try {
      return await pool.use(work, deadline);
    } catch (cause) {
      throw this.#unreachable(name, cause);
    }
  }

  #unreachable(name: string, cause: unknown): StorePartlyUnavailable {
    const { fault, advice } = unavailable(cause);
    return new StorePartlyUnavailable(`the worker ${name} cannot be used, so its plants get 503: ${fault}`, {
      advice: this.#reached.has(name) ? advice : [advice, HIDDEN_WORKERS].filter(Boolean).join(', or '),
    });
  }

  /** Begins a batch. @returns the lock, after a recent reading of the shards with it */
  async #enterLock(deadline: number): Promise<TableLock> {
    const isRecent = this.#clock.now() - this.#shardsReadAt <= SHARDS_AGE_MAX_MS;
    if (!isRecent || !this.#lock?.isHeld) await this.refresh(deadline);
    const lock = this.#lock;
    if (!lock?.isHeld) throw new StoreUnavailable('the connection to the coordinator was lost');
    lock.enter();
    return lock;
  }

  /** The lock was lost during a batch, so a command may have replaced the table without its plants. */
  async #rejectOtherTable(lost: TableLock, deadline: number): Promise<void> {
    const lock = await this.#enterLock(deadline);
    lock.leave();
    if (lock.tableId === lost.tableId) return;
    throw new StoreUnavailable('the table plant_revision was replaced while plants were written', {
      advice: STOP_INSTANCES,
    });
  }

  async #refresh(deadline: number): Promise<void> {
    const startedAt = this.#clock.now();
    const lock = await this.#renewLock(deadline);
    const shards = await lock.read(async coordinator => {
      await rejectDangerousTable(coordinator);
      return await readShards(coordinator);
    });
    this.#shardsReadAt = startedAt;
    this.#useShards(shards);
  }

  async #renewLock(deadline: number): Promise<TableLock> {
    const held = this.#lock;
    if (held?.isHeld) {
      // Batches still use the lock before this one.
      if (this.#previousLock?.isHeld) return held;
      const renewBy = Math.min(deadline, this.#clock.now() + LOCK_RENEWAL_TIMEOUT_MS);
      const renewed = await TableLock.take(this.#lockPool, renewBy, LOCK_RENEWAL_WAIT_MS).catch(
        () => undefined,
      );
      this.#waiting = renewed === undefined ? await held.waiting() : { kind: 'nothing' };
      if (renewed === undefined && this.#waiting.kind !== 'change') return held;
      held.retire();
      this.#previousLock = held;
      this.#lock = renewed;
      if (renewed !== undefined) return renewed;
    }
    // A lost lock also frees its connection of the pool.
    held?.retire();
    // The table may change before the new lock is there, so no batch begins before it is checked.
    this.#shardsReadAt = Number.NEGATIVE_INFINITY;
    this.#lock = await TableLock.take(this.#lockPool, deadline);
    return this.#lock;
  }

  #openPool(worker: HostAddress): Pool {
    const { openPoolOf, batchesInFlightMax } = this.#pools;
    return openPoolOf(worker, prepareServer, batchesInFlightMax + 1);
  }

  #useShards(shards: Shards): void {
    this.#shards = shards;
    const removed = new Map(this.#workers);
    for (const { worker } of shards) {
      if (worker === undefined) continue;
      const name = hostName(worker);
      removed.delete(name);
      if (!this.#areHidden && !this.#workers.has(name)) this.#workers.set(name, this.#openPool(worker));
    }
    for (const [name, pool] of removed) {
      this.#workers.delete(name);
      void pool.close();
    }
  }
}

const STOP_INSTANCES = 'stop all instances before `undistribute_table` and `alter_distributed_table`';
const HIDDEN_WORKERS = 'add citus=coordinator to the address if no worker can be reached from here';
const CONVERSION_WAITS: Problem = {
  fault: 'a command waits to replace the table plant_revision, and instances that start now wait for it',
  advice: `cancel the command, and ${STOP_INSTANCES}`,
};
