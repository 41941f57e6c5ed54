import type { Connection } from '../connection.ts';
import type { HostAddress } from '../postgres-url.ts';

/** A part of `plant_revision`, which Citus spreads over its servers by a hash of the id. */
interface Shard {
  /** The smallest hash of the shard. It ends where the next one begins. */
  hashMin: number;
  /** If it is undefined, the coordinator stores the shard. */
  worker: HostAddress | undefined;
}

/** All shards, in the order of their hashes; empty if the table is not distributed. */
export type Shards = readonly Shard[];

/** Reads all shards. A shard may move to another worker at any time. */
export async function readShards(connection: Connection): Promise<Shards> {
  const rows = await connection.run({
    text: `SELECT DISTINCT ON (hash_min) shardminvalue::integer AS hash_min, groupid, nodename, nodeport
      FROM pg_dist_shard JOIN pg_dist_placement USING (shardid) JOIN pg_dist_node USING (groupid)
      WHERE logicalrelid = to_regclass('plant_revision') AND noderole = 'primary' AND shardminvalue IS NOT NULL
      ORDER BY hash_min, nodename, nodeport`,
  });
  return rows.map(([hashMin, group, host, port]) => ({
    hashMin: Number(hashMin),
    worker: group === COORDINATOR_GROUP ? undefined : { host: host!, port: Number(port) },
  }));
}

/** @returns the worker that stores this id; undefined if the coordinator stores it */
export function workerOf(shards: Shards, id: bigint): HostAddress | undefined {
  const hash = hashOf(id);
  return shards.findLast(({ hashMin }) => hashMin <= hash)?.worker;
}

/** https://docs.citusdata.com/en/stable/develop/api_metadata.html, `pg_dist_node` */
export const COORDINATOR_GROUP = '0';

/** The function `hashint8` of PostgreSQL, by which Citus selects the shard of a bigint. */
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
