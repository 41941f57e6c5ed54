import { ID_MIN } from '../../contract/limits.ts';
import { StoreRejected } from '../plant-store.ts';
import type { Connection } from './connection.ts';
import { sqlStateOf } from './failure.ts';

/** A server that stores a part of the plants. */
export interface Worker {
  address: string;
  /** An id whose shard it has. A statement with `WHERE id = …` runs on the worker of that id. */
  id: bigint;
}

interface Shard {
  /** The smallest hash of the shard. It ends where the next one begins. */
  hashMin: number;
  worker: Worker;
}

/** Two instances changed the role at the same time. */
const CONCURRENT_UPDATE = 'XX000';

/**
 * What the service knows of Citus, which spreads `plant_revision` over workers by a hash of the id.
 * On any other engine there is no shard.
 *
 * A statement with rows of several shards runs on one shard after the other, and needs a two-phase
 * commit. So plants of different shards never share a batch. A batch that is spread nevertheless,
 * because shards were moved or split, is only slower.
 */
export class CitusShards {
  #shards: Shard[] = [];

  /** One worker for each address. */
  get workers(): Worker[] {
    return [...new Map(this.#shards.map(({ worker }) => [worker.address, worker])).values()];
  }

  /** The number of the shard that stores this id; 0 without shards. */
  shardOf(id: bigint): number {
    if (this.#shards.length < 2) return 0;
    const hash = hashOf(id);
    return Math.max(
      0,
      this.#shards.findLastIndex(({ hashMin }) => hashMin <= hash),
    );
  }

  workerOf(id: bigint): Worker | undefined {
    return this.#shards[this.shardOf(id)]?.worker;
  }

  /**
   * Checks a new connection, and reads where the plants are.
   *
   * `SET synchronous_commit` does not reach the workers, but the setting of the role does. So the
   * service sets it for its own role, unless the role has it.
   *
   * @throws {StoreRejected} when a worker would confirm plants that are not flushed
   */
  async prepare(connection: Connection): Promise<void> {
    if (!connection.isCitus) return;
    await enableSynchronousCommit(connection);
    await this.read(connection);
    for (const worker of this.workers) {
      try {
        await durabilityOf(connection, worker);
      } catch (error) {
        // A worker that is away does not confirm anything.
        if (error instanceof StoreRejected || sqlStateOf(error) === undefined) throw error;
      }
    }
  }

  /** Reads where the plants are. Shards may move to other workers at any time. */
  async read(connection: Connection): Promise<void> {
    const rows = await connection.run({
      text: `SELECT DISTINCT ON (hash_min) shardminvalue::integer AS hash_min, nodename || ':' || nodeport
        FROM pg_dist_shard JOIN pg_dist_placement USING (shardid) JOIN pg_dist_node USING (groupid)
        WHERE logicalrelid = to_regclass('plant_revision') AND noderole = 'primary' AND shardminvalue IS NOT NULL
        ORDER BY hash_min, nodename, nodeport`,
    });
    this.#shards = rows.map(([hashMin, address]) => ({
      hashMin: Number(hashMin),
      worker: { address: address!, id: 0n },
    }));
    const missing = new Set(this.#shards.keys());
    for (let id = ID_MIN; missing.size > 0; id++) {
      const shard = this.shardOf(id);
      if (missing.delete(shard)) this.#shards[shard]!.worker.id = id;
    }
  }
}

/**
 * Asks a worker for its settings, in the session in which it commits plants. Waits for its
 * synchronous standby, if it has one.
 *
 * @returns `fsync` and `full_page_writes`
 * @throws {StoreRejected} when the session would confirm plants that are not flushed
 */
export async function durabilityOf(connection: Connection, { id, address }: Worker): Promise<string[]> {
  const [row] = await connection.commit({
    name: 'worker_durability',
    text: `SELECT current_setting('fsync'), current_setting('full_page_writes'),
      current_setting('synchronous_commit'), current_database(), count(*), ${CONFIRM} FROM plant_revision WHERE id = $1`,
    values: [id],
  });
  const [fsync, fullPageWrites, synchronousCommit, database] = row!;
  if (synchronousCommit === 'off') {
    throw new StoreRejected(
      `synchronous_commit is off on the worker ${address}, which would lose confirmed plants; run as this user on the coordinator: ALTER ROLE CURRENT_USER IN DATABASE ${database} SET synchronous_commit = on`,
    );
  }
  return [fsync!, fullPageWrites!];
}

/** A commit on a server that has synchronous standbys. It confirms all commits before it. */
const CONFIRM = `CASE WHEN current_setting('synchronous_standby_names') <> ''
  THEN pg_logical_emit_message(true, 'plant-store', '') END`;

/** Returns when all commits of these ids are as durable as their workers make commits. */
export async function confirmOnWorkers(connection: Connection, ids: readonly bigint[]): Promise<void> {
  await connection.commit({
    name: 'confirm',
    text: `SELECT ${CONFIRM} FROM plant_revision WHERE id = ANY($1::bigint[]) LIMIT 1`,
    values: [ids],
  });
}

async function enableSynchronousCommit(connection: Connection): Promise<void> {
  const [row] = await connection.run({
    text: `SELECT format('ALTER ROLE CURRENT_USER IN DATABASE %I SET synchronous_commit = on', current_database()), EXISTS (
        SELECT 1 FROM pg_db_role_setting WHERE setrole = current_user::regrole AND setconfig::text LIKE '%synchronous\\_commit=%'
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

/** `hashint8` of PostgreSQL, the hash by which Citus selects the shard of a bigint. */
export function hashOf(id: bigint): number {
  const high = Number(BigInt.asIntN(32, id >> 32n));
  const key = Number(BigInt.asIntN(32, id)) ^ (high >= 0 ? high : ~high);
  // Jenkins' final mix: each step is `x = (x ^ y) - (y rotated by n bits)`.
  let b = HASH_START;
  let a = (HASH_START + key) | 0;
  let c = mixed(HASH_START, b, 14);
  a = mixed(a, c, 11);
  b = mixed(b, a, 25);
  c = mixed(c, b, 16);
  a = mixed(a, c, 4);
  b = mixed(b, a, 14);
  return mixed(c, b, 24);
}

/** The start value of `hash_bytes` in PostgreSQL, for keys of four bytes. */
const HASH_START = (0x9e37_79b9 + 4 + 3_923_095) | 0;

function mixed(x: number, y: number, bits: number): number {
  return ((x ^ y) - ((y << bits) | (y >>> (32 - bits)))) | 0;
}
