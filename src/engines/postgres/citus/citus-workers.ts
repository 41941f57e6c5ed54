import { type Clock, SYSTEM_CLOCK } from '../../../core/clock.ts';
import { StorePartlyUnavailable, StoreRejected } from '../../../core/commit/store-errors.ts';
import type { Problem } from '../../../core/problem.ts';
import { rejectSchema } from '../../store-rejections.ts';
import { confirmEverythingBefore } from '../confirm-commits.ts';
import type { Connection } from '../connection.ts';
import { type ConnectionPool, OPERATION_TIMEOUT_MS } from '../connection-pool.ts';
import { durabilityWarnings } from '../durability-warnings.ts';
import { sqlStateOf, unavailable } from '../postgres-errors.ts';
import type { HostAddress } from '../postgres-url.ts';
import { schemaFaults } from '../schema.ts';
import { COORDINATOR_GROUP, readShards, type Shards, workerOf } from './citus-shards.ts';

/** A batch needs a map of the shards that was read within this time. */
const SHARDS_AGE_MAX_MS = 1_000;
/** Timeout for the warnings of one worker, so that `/readyz` does not fail while it is away. */
const WORKER_CHECK_TIMEOUT_MS = 1_500;

/** The SQLSTATE when another instance changes the role at the same time. */
const CONCURRENT_UPDATE = 'XX000';

/**
 * The workers of Citus, each with its own connections; none without Citus.
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
 */
export class CitusWorkers {
  readonly #coordinator: ConnectionPool;
  readonly #openPool: (worker: HostAddress) => ConnectionPool;
  readonly #clock: Clock;
  readonly #workers = new Map<string, ConnectionPool>();
  #shards: Shards = [];
  /** When the last reading of the shards began, on the monotonic clock. */
  #shardsReadAt = 0;
  #refreshing: Promise<void> | undefined;

  /** @param openPool makes the pool of a worker, whose connections need {@link prepareServer} */
  constructor(
    coordinator: ConnectionPool,
    openPool: (worker: HostAddress) => ConnectionPool,
    clock: Clock = SYSTEM_CLOCK,
  ) {
    this.#coordinator = coordinator;
    this.#openPool = openPool;
    this.#clock = clock;
  }

  /** Whether the database has shards. Without Citus it has none. */
  get areUsed(): boolean {
    return this.#shards.length > 0;
  }

  /** Number of connections to all workers. */
  get connections(): number {
    return this.#workers.values().reduce((sum, pool) => sum + pool.connections, 0);
  }

  /** The name of the worker that stores this id; undefined if the coordinator stores it. */
  workerOf(id: bigint): string | undefined {
    const worker = workerOf(this.#shards, id);
    return worker && nameOf(worker);
  }

  /**
   * Runs an operation on the server that stores this id.
   *
   * @throws {StorePartlyUnavailable} if the worker does not work
   * @throws {StoreUnavailable} if the coordinator does not work
   */
  async use<T>(id: bigint, work: (connection: Connection) => Promise<T>): Promise<T> {
    const deadline = this.#clock.now() + OPERATION_TIMEOUT_MS;
    if (this.areUsed && this.#clock.now() - this.#shardsReadAt > SHARDS_AGE_MAX_MS) {
      // The batches of all workers share one reading of the shards.
      this.#refreshing ??= this.#coordinator
        .use(connection => this.refresh(connection), deadline)
        .finally(() => (this.#refreshing = undefined));
      await this.#refreshing;
    }
    const name = this.workerOf(id);
    const pool = name === undefined ? undefined : this.#workers.get(name);
    if (name === undefined || pool === undefined) return await this.#coordinator.use(work, deadline);
    try {
      return await pool.use(work, deadline);
    } catch (cause) {
      throw unreachable(name, cause);
    }
  }

  /** Reads the shards, opens the pools of new workers, and closes those of removed workers. */
  async refresh(coordinator: Connection): Promise<void> {
    const startedAt = this.#clock.now();
    // Citus rejects a table guard in a statement, so the schema is compared here.
    if (coordinator.isCitus) rejectSchema(await schemaFaults(coordinator));
    this.#shards = await readShards(coordinator);
    this.#shardsReadAt = startedAt;
    const removed = new Map(this.#workers);
    for (const { worker } of this.#shards) {
      if (worker === undefined) continue;
      const name = nameOf(worker);
      removed.delete(name);
      if (!this.#workers.has(name)) this.#workers.set(name, this.#openPool(worker));
    }
    for (const [name, pool] of removed) {
      this.#workers.delete(name);
      void pool.close();
    }
  }

  /** Inspects all workers. @throws {StorePartlyUnavailable} when no worker can be used */
  async warnings(): Promise<Problem[]> {
    const failures: StorePartlyUnavailable[] = [];
    const checks = [...this.#workers].map(async ([name, pool]) => {
      try {
        return await pool.use(async connection => {
          await confirmEverythingBefore(connection);
          return await durabilityWarnings(connection, `the worker ${name}`);
        }, this.#clock.now() + WORKER_CHECK_TIMEOUT_MS);
      } catch (cause) {
        const failure = unreachable(name, cause);
        failures.push(failure);
        return [failure];
      }
    });
    const warnings = (await Promise.all(checks)).flat();
    if (failures.length > 0 && failures.length === checks.length) throw failures[0];
    return warnings;
  }

  async close(): Promise<void> {
    await Promise.all(this.#workers.values().map(pool => pool.close()));
  }
}

/** @throws {StoreRejected} if the server is a worker of Citus, which has no tokens */
export async function rejectWorker(connection: Connection): Promise<void> {
  if (!connection.isCitus) return;
  const [row] = await connection.run({ text: 'SELECT groupid FROM pg_dist_local_group' });
  if (row![0] === COORDINATOR_GROUP) return;
  throw new StoreRejected(`${nameOf(connection.host)} is a worker of Citus`, {
    advice: 'name only the coordinator',
  });
}

/** Prepares a connection to the server of the address. @throws {StoreRejected} for a worker */
export async function prepareCoordinator(connection: Connection): Promise<void> {
  if (!connection.isCitus) return;
  await rejectWorker(connection);
  await prepareServer(connection);
}

/**
 * Prepares a connection to a server that stores plants or passes them on.
 *
 * The service sets `synchronous_commit` for the role on each server, because Citus passes a
 * statement on without that setting of its session. Citus itself sets it only for roles that it
 * created.
 */
export async function prepareServer(connection: Connection): Promise<void> {
  // In Citus 13.2, each execution of a generic plan leaks memory.
  await connection.run({ text: 'SET plan_cache_mode = force_custom_plan' });
  try {
    await connection.run({ text: SET_COMMIT_OF_ROLE });
  } catch (error) {
    if (sqlStateOf(error) !== CONCURRENT_UPDATE) throw error;
  }
}

const SET_COMMIT_OF_ROLE = `DO $$ BEGIN
  IF NOT EXISTS (
    SELECT 1 FROM pg_db_role_setting JOIN pg_database ON pg_database.oid = setdatabase
    WHERE setrole = current_user::regrole AND datname = current_database()
      AND 'synchronous_commit=' || current_setting('synchronous_commit') = ANY (setconfig)
  ) THEN
    PERFORM set_config('citus.enable_ddl_propagation', 'off', true);
    EXECUTE format('ALTER ROLE CURRENT_USER IN DATABASE %I SET synchronous_commit FROM CURRENT', current_database());
  END IF;
END $$`;

function nameOf({ host, port }: HostAddress): string {
  return `${host}:${port}`;
}

function unreachable(name: string, cause: unknown): StorePartlyUnavailable {
  const { fault, advice } = unavailable(cause);
  return new StorePartlyUnavailable(`the worker ${name} cannot be used, so its plants get 503: ${fault}`, {
    advice,
  });
}
