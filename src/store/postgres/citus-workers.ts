import { setTimeout as wait } from 'node:timers/promises';
import { StoreRejected, StoreUnavailable } from '../plant-store.ts';
import { type CitusShards, durabilityOf, type Worker } from './citus-shards.ts';
import type { Connection } from './connection.ts';
import type { ConnectionPool } from './connection-pool.ts';
import { settingWarnings } from './durability-warnings.ts';
import { kindOf, STATEMENT_CANCELED, sqlStateOf } from './failure.ts';
import { SEARCH_INTERVAL_MS } from './limits.ts';

/**
 * Which workers of Citus are away, while the coordinator still responds.
 *
 * An operation waits for its worker as long as for any outage. When it fails, plants of this worker
 * fail at once, until a test commit on the worker succeeds. Plants of other workers are stored.
 */
export class CitusWorkers {
  readonly #pool: ConnectionPool;
  readonly #shards: CitusShards;
  /** The cause of each outage, by the address of the worker. */
  readonly #away = new Map<string, unknown>();
  #closed = false;

  constructor(pool: ConnectionPool, shards: CitusShards) {
    this.#pool = pool;
    this.#shards = shards;
  }

  /**
   * Runs an operation on the shard of this id.
   *
   * @throws {StoreUnavailable} at once during an outage of its worker
   */
  async use<T>(id: bigint, work: (connection: Connection) => Promise<T>): Promise<T> {
    const worker = this.#shards.workerOf(id);
    if (worker === undefined) return await this.#pool.use(work);
    const cause = this.#away.get(worker.address);
    if (cause !== undefined) throw unreachable(worker, cause);
    let failure: unknown;
    try {
      return await this.#pool.use(async connection => {
        try {
          return await work(connection);
        } catch (error) {
          if (isOfWorker(error)) failure = error;
          throw error;
        }
      });
    } catch (error) {
      if (failure !== undefined) this.#beginOutage(worker, failure);
      throw error;
    }
  }

  /** @returns warnings of all workers. @throws when no worker can be used */
  async check(connection: Connection): Promise<string[]> {
    await this.#shards.read(connection);
    const { workers } = this.#shards;
    const warnings: string[] = [];
    const failures: unknown[] = [];
    for (const worker of workers) {
      try {
        const cause = this.#away.get(worker.address);
        if (cause !== undefined) throw cause;
        const [fsync, fullPageWrites] = await durabilityOf(connection, worker);
        warnings.push(...settingWarnings(`the worker ${worker.address}`, fsync!, fullPageWrites!));
      } catch (error) {
        if (error instanceof StoreRejected || sqlStateOf(error) === undefined) throw error;
        failures.push(error);
        warnings.push(unreachable(worker, error).message);
      }
    }
    if (failures.length > 0 && failures.length === workers.length) throw failures[0];
    return warnings;
  }

  close(): void {
    this.#closed = true;
  }

  #beginOutage(worker: Worker, cause: unknown): void {
    if (this.#away.has(worker.address)) return;
    this.#away.set(worker.address, cause);
    void this.#endOutage(worker);
  }

  async #endOutage(worker: Worker): Promise<void> {
    while (!this.#closed) {
      try {
        await this.#pool.use(connection => durabilityOf(connection, worker));
        break;
      } catch {
        await wait(SEARCH_INTERVAL_MS, undefined, { ref: false });
      }
    }
    this.#away.delete(worker.address);
  }
}

/** The coordinator cancels a statement when a worker does not respond. */
function isOfWorker(error: unknown): boolean {
  return kindOf(error, true) === 'workerLost' || sqlStateOf(error) === STATEMENT_CANCELED;
}

function unreachable({ address }: Worker, cause: unknown): StoreUnavailable {
  const error = new StoreUnavailable(
    `the worker ${address} cannot be used, so its plants get 503: ${(cause as Error).message}`,
    { cause },
  );
  error.isPartial = true;
  return error;
}
