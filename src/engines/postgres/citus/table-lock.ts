import { StoreRejected } from '../../../core/commit/store-errors.ts';
import type { Connection } from '../connection.ts';
import { kindOf, unavailable } from '../postgres-errors.ts';
import type { Pool } from '../topology/topology.ts';

/** Locks of one instance: one that batches still use, and its successor. Each has a connection. */
export const TABLE_LOCKS_MAX = 2;

/**
 * What other transactions wait for before they may lock `plant_revision`, by the name of their lock
 * (https://www.postgresql.org/docs/current/explicit-locking.html).
 */
export type Waiting =
  /** Nothing that our lock holds up. */
  | { kind: 'nothing' }
  /** A command that copies the table into another one, such as `undistribute_table`. */
  | { kind: 'conversion' }
  /** Any other change, such as a schema step or CREATE INDEX. */
  | { kind: 'change' };

/**
 * The lock of `plant_revision` on the coordinator that a local INSERT would take.
 *
 * An instance writes on the workers, where no lock of the coordinator stops it. But
 * `undistribute_table` and `alter_distributed_table` copy all rows into a new table, and then drop
 * the old one. They take the lock EXCLUSIVE on the coordinator only (`CreateTableConversion` in
 * `alter_table.c` of Citus), so plants that arrive meanwhile would be lost. This lock makes them
 * wait. `lock_relation_if_exists` is a function of Citus; LOCK TABLE would lock all workers, too.
 *
 * The lock ends with its transaction. At the level `read committed` an idle transaction has neither
 * a snapshot nor a number, so it does not hold up VACUUM. It would hold up CREATE INDEX
 * CONCURRENTLY, which waits for the end of all transactions that use the table.
 */
export class TableLock {
  /** The number of the table. Each of those commands replaces the table by another one. */
  readonly tableId: string;
  readonly #connection: Connection;
  readonly #released = Promise.withResolvers<void>();
  #state: 'current' | 'retired' | 'released' = 'current';
  #batches = 0;

  private constructor(connection: Connection, tableId: string) {
    this.#connection = connection;
    this.tableId = tableId;
  }

  /**
   * Takes the lock. Its connection of the pool stays in use until the lock is released.
   *
   * @param waitMsMax how long to wait for locks of others; by default until the deadline
   * @throws {StoreUnavailable}
   */
  static take(pool: Pool, deadline: number, waitMsMax?: number): Promise<TableLock> {
    const { promise, resolve, reject } = Promise.withResolvers<TableLock>();
    const hold = async (connection: Connection): Promise<void> => {
      let lock: TableLock | undefined;
      try {
        await connection.transaction(async () => {
          lock = new TableLock(connection, await lockedTable(connection, waitMsMax));
          // The deadline was for taking it.
          connection.deadline = Number.POSITIVE_INFINITY;
          resolve(lock);
          await lock.#released.promise;
        });
      } catch (error) {
        // The end of the connection ends the transaction, also if it was not rolled back.
        if (lock !== undefined || kindOf(error) === 'connectionLost') connection.destroy();
        // After the lock was taken, a retry would take another one.
        if (lock === undefined) throw error;
      }
    };
    pool.use(hold, deadline).catch(reject);
    return promise;
  }

  /** Whether the lock still holds, as far as this program knows. */
  get isHeld(): boolean {
    return this.#state !== 'released' && !this.#connection.isBroken;
  }

  /** Counts a batch. The lock is not released before {@link leave}. */
  enter(): void {
    this.#batches++;
  }

  leave(): void {
    this.#batches--;
    this.#releaseIfUnused();
  }

  /** Releases the lock as soon as its batches have ended, or at once if it is lost. */
  retire(): void {
    if (this.#state === 'current') this.#state = 'retired';
    this.#releaseIfUnused();
  }

  /** Reads in the transaction of the lock. @throws {StoreUnavailable} */
  async read<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    try {
      return await work(this.#connection);
    } catch (error) {
      // An error of the server ends the transaction, and so the lock.
      if (!(error instanceof StoreRejected)) this.#connection.destroy();
      throw unavailable(error);
    }
  }

  /** What this lock holds up. */
  async waiting(): Promise<Waiting> {
    const rows = await this.read(connection =>
      connection.run({
        text: `SELECT DISTINCT mode FROM pg_locks WHERE NOT granted AND relation = ${this.tableId}
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
      }),
    );
    const modes = rows.map(([mode]) => mode!);
    if (modes.some(mode => CHANGE_LOCKS.includes(mode))) return { kind: 'change' };
    return { kind: modes.includes(CONVERSION_LOCK) ? 'conversion' : 'nothing' };
  }

  #releaseIfUnused(): void {
    if (this.#state !== 'retired' || (this.#batches > 0 && !this.#connection.isBroken)) return;
    this.#state = 'released';
    this.#released.resolve();
  }
}

const CONVERSION_LOCK = 'ExclusiveLock';
const CHANGE_LOCKS = ['ShareLock', 'ShareRowExclusiveLock', 'AccessExclusiveLock'];

/** Locks the table within a transaction. @returns its number */
async function lockedTable(connection: Connection, waitMsMax: number | undefined): Promise<string> {
  if (waitMsMax !== undefined) await connection.run({ text: `SET LOCAL lock_timeout = ${waitMsMax}` });
  await connection.run({ text: `SELECT lock_relation_if_exists('plant_revision', 'ROW EXCLUSIVE')` });
  const [row] = await connection.run({ text: `SELECT to_regclass('plant_revision')::oid` });
  const tableId = row![0];
  if (tableId === null || tableId === undefined)
    throw new StoreRejected('the table plant_revision is missing', { advice: 'restore it from a backup' });
  return tableId;
}
