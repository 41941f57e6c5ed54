import { StoreRejected, StoreUnavailable } from '../plant-store.ts';
import { confirmEverythingBefore } from './batch-commit.ts';
import { COORDINATOR_GROUP, readShards, type Shards, workerOf } from './citus-shards.ts';
import type { Connection } from './connection.ts';
import { ConnectionPool } from './connection-pool.ts';
import { durabilityWarnings } from './durability-warnings.ts';
import { reasonOf, sqlStateOf } from './failure.ts';
import { HostSearch } from './host-search.ts';
import { OPERATION_TIMEOUT_MS, WORKER_CHECK_TIMEOUT_MS } from './limits.ts';
import type { HostAddress, PostgresAddress } from './postgres-url.ts';

interface Worker {
  /** As the warnings show it. */
  name: string;
  search: HostSearch;
  pool: ConnectionPool;
}

/** Two instances changed the role at the same time. */
const CONCURRENT_UPDATE = 'XX000';

/**
 * The workers of Citus, each with its own connections.
 *
 * A plant is written on the worker that stores it, and a batch has plants of one worker only. So it
 * is a local transaction: it needs neither a two-phase commit nor the coordinator. A worker that is
 * away stops only its own plants. When a shard has moved, its old worker passes the statement on to
 * the new one, until the next `check`.
 *
 * Without Citus there is no worker.
 */
export class CitusWorkers {
  readonly #address: PostgresAddress;
  readonly #connectionsMax: number;
  readonly #workers = new Map<string, Worker>();
  /** The names of all workers that ever were: the lane of a worker stays the same. */
  readonly #lanes: (string | undefined)[] = [];
  #shards: Shards = [];

  /** @param connectionsMax for each worker */
  constructor(address: PostgresAddress, connectionsMax: number) {
    this.#address = address;
    this.#connectionsMax = connectionsMax;
  }

  get connections(): number {
    return [...this.#workers.values()].reduce((sum, { pool }) => sum + pool.connections, 0);
  }

  laneOf(id: bigint): number {
    const name = nameOf(workerOf(this.#shards, id));
    const lane = this.#lanes.indexOf(name);
    return lane === -1 ? this.#lanes.push(name) - 1 : lane;
  }

  /**
   * Runs an operation on the worker of this id, or on the coordinator if it has none.
   *
   * Without the coordinator it fails, although the worker may respond: nobody could tell this
   * service that a token was revoked.
   *
   * @throws {StoreUnavailable}
   */
  async use<T>(
    id: bigint,
    coordinator: ConnectionPool,
    work: (connection: Connection) => Promise<T>,
  ): Promise<T> {
    const worker = this.#workers.get(nameOf(workerOf(this.#shards, id)) ?? '');
    if (worker === undefined) return await coordinator.use(work);
    const deadline = performance.now() + OPERATION_TIMEOUT_MS;
    await coordinator.up(deadline);
    try {
      return await worker.pool.use(work, deadline);
    } catch (cause) {
      throw unreachable(worker, cause);
    }
  }

  /** Reads which workers there are. */
  async find(coordinator: Connection): Promise<void> {
    this.#shards = await readShards(coordinator);
    const hosts = new Map(this.#shards.map(({ worker }) => [nameOf(worker), worker]));
    for (const [name, { pool }] of this.#workers) {
      if (hosts.has(name)) continue;
      this.#workers.delete(name);
      void pool.close();
    }
    for (const [name, host] of hosts) {
      if (name === undefined || this.#workers.has(name)) continue;
      const search = new HostSearch({ ...this.#address, hosts: [host!] }, prepareWorker);
      this.#workers.set(name, { name, search, pool: new ConnectionPool(search, this.#connectionsMax) });
    }
  }

  /** @returns the warnings of all workers. @throws {StoreUnavailable} when none can be used */
  async check(): Promise<string[]> {
    const failures: unknown[] = [];
    const checks = [...this.#workers.values()].map(async worker => {
      try {
        return await warningsOf(worker);
      } catch (cause) {
        const failure = unreachable(worker, cause);
        failures.push(failure);
        return [failure.message];
      }
    });
    const warnings = (await Promise.all(checks)).flat();
    if (failures.length > 0 && failures.length === checks.length) throw failures[0];
    return warnings;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#workers.values()].map(({ pool }) => pool.close()));
  }
}

/** A worker executes every statement on plants, but it has no tokens. */
export async function rejectWorker(connection: Connection): Promise<void> {
  if (!connection.isCitus) return;
  const [row] = await connection.run({ text: 'SELECT groupid FROM pg_dist_local_group' });
  if (row![0] === COORDINATOR_GROUP) return;
  const { host, port } = connection.host;
  throw new StoreRejected(`${host}:${port} is a worker of Citus; name only the coordinator`);
}

/**
 * Prepares a connection to the coordinator that will write plants.
 *
 * `SET synchronous_commit` does not reach the workers, but the setting of the role does. So the
 * service sets it for its own role, unless the role has it.
 */
export async function prepareCoordinator(connection: Connection): Promise<void> {
  if (!connection.isCitus) return;
  await rejectWorker(connection);
  const [row] = await connection.run({
    text: `SELECT format('ALTER ROLE CURRENT_USER IN DATABASE %I SET synchronous_commit = on', current_database()), EXISTS (
        SELECT 1 FROM pg_db_role_setting WHERE setrole = current_user::regrole AND setconfig::text ~ 'synchronous_commit=(?!off)'
          AND setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database())))`,
  });
  const [statement, isSet] = row!;
  if (isSet === 't') return;
  try {
    await connection.run({ text: statement! });
  } catch (error) {
    if (sqlStateOf(error) !== CONCURRENT_UPDATE) throw error;
  }
}

/** Citus 13.2 keeps the local plan of each execution of a generic plan, until no memory is left. */
async function prepareWorker(connection: Connection): Promise<void> {
  await connection.run({ text: 'SET plan_cache_mode = force_custom_plan' });
}

async function warningsOf({ name, search, pool }: Worker): Promise<string[]> {
  return await pool.use(async connection => {
    await confirmEverythingBefore(connection);
    return await durabilityWarnings(connection, () => search.connect(), `the worker ${name}`);
  }, performance.now() + WORKER_CHECK_TIMEOUT_MS);
}

function nameOf(worker: HostAddress | undefined): string | undefined {
  return worker && `${worker.host}:${worker.port}`;
}

function unreachable({ name }: Worker, cause: unknown): StoreUnavailable {
  const error = new StoreUnavailable(
    `the worker ${name} cannot be used, so its plants get 503: ${reasonOf((cause as Error).cause ?? cause)}`,
  );
  error.isPartial = true;
  return error;
}
