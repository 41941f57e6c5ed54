import type { Problem } from '../../../core/problem.ts';
import type { StoreConnection } from '../topology/topology.ts';

/**
 * Warns of server settings with which a confirmed plant can be lost
 * (https://www.postgresql.org/docs/current/runtime-config-wal.html).
 *
 * @param server the name of the server in a warning
 * @returns one warning for each setting
 */
export async function durabilityWarnings(
  connection: StoreConnection,
  server = 'the PostgreSQL server',
): Promise<Problem[]> {
  // `reset_val` is the setting of the server or role, not the one of this connection.
  const [row] = await connection.run({
    name: 'durability',
    text: `SELECT current_setting('fsync', true),
      CASE WHEN EXISTS (${AURORA}) THEN 'on' ELSE current_setting('full_page_writes', true) END,
      (SELECT reset_val FROM pg_settings WHERE name = 'synchronous_commit'),
      (SELECT relreplident FROM pg_class WHERE oid = to_regclass('plant_revision'))`,
  });
  const [fsync, fullPageWrites, commitDefault, replicaIdentity] = row!;
  const warnings = lossWarnings(server, fsync, fullPageWrites, commitDefault);
  if (connection.topology.spansServers && replicaIdentity !== 'n') {
    warnings.push({
      fault: `a shard that moves by logical replication from ${server} may lose plants`,
      advice: 'run `npx plant-store token create LABEL` once as the owner, which makes such moves fail',
    });
  }
  return warnings;
}

/**
 * Aurora has no pages to tear: its storage makes them from the write-ahead log, and nobody can change
 * `full_page_writes` there. docs/scale.md says so once, instead of a warning that nobody can end.
 */
const AURORA = `SELECT FROM pg_proc WHERE proname = 'aurora_version'`;

/** @returns one warning for each of these settings that is off */
export function lossWarnings(
  server: string,
  fsync: string | null | undefined,
  fullPageWrites: string | null | undefined,
  commitDefault: string | null | undefined,
): Problem[] {
  return [
    fsync === 'off' && {
      fault: `fsync is off on ${server}: plants confirmed with 200 may be lost, and the database may be destroyed, when the machine fails`,
      advice: 'set fsync = on',
    },
    fullPageWrites === 'off' && {
      fault: `full_page_writes is off on ${server}: a power failure may destroy plants that were stored long ago`,
      advice: 'set full_page_writes = on',
    },
    commitDefault === 'off' && {
      fault: `synchronous_commit is off on ${server}, or for this role or database: this service enables it for its own plants, but other writes may be lost`,
      advice: 'set synchronous_commit = on, and restart the service',
    },
  ].filter(warning => warning !== false);
}
