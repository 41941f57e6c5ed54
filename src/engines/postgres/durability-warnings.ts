import type { Connection } from './connection.ts';

/**
 * Warns of server settings with which a confirmed plant can be lost
 * (https://www.postgresql.org/docs/current/runtime-config-wal.html).
 *
 * @param server the name of the server in a warning
 * @returns one text for each setting
 */
export async function durabilityWarnings(
  connection: Connection,
  server = 'the PostgreSQL server',
): Promise<string[]> {
  // `reset_val` is the setting of the server or role, not the one of this connection.
  const [row] = await connection.run({
    name: 'durability',
    text: `SELECT current_setting('fsync', true), current_setting('full_page_writes', true),
      (SELECT reset_val FROM pg_settings WHERE name = 'synchronous_commit'),
      (SELECT relreplident FROM pg_class WHERE oid = to_regclass('plant_revision'))`,
  });
  const [fsync, fullPageWrites, commitDefault, replicaIdentity] = row!;
  return [
    fsync === 'off' &&
      `fsync is off on ${server}: plants confirmed with 200 may be lost, and the database may be destroyed, when the machine fails; set fsync = on`,
    fullPageWrites === 'off' &&
      `full_page_writes is off on ${server}: a power failure may destroy plants that were stored long ago; set full_page_writes = on`,
    commitDefault === 'off' &&
      `synchronous_commit is off on ${server}, or for this role or database: this service enables it for its own plants, but other writes may be lost; set synchronous_commit = on, and restart the service`,
    connection.isCitus &&
      replicaIdentity !== 'n' &&
      `a shard that moves by logical replication from ${server} may lose plants; run \`npx plant-store token create LABEL\` once as the owner, which makes such moves fail`,
  ].filter(warning => warning !== false);
}
