import type { Connection } from './connection.ts';

/**
 * The settings of this server that break the promise of a 200.
 * https://www.postgresql.org/docs/current/runtime-config-wal.html
 *
 * @param connect opens a further connection
 */
export async function durabilityWarnings(
  connection: Connection,
  connect: () => Promise<Connection>,
): Promise<string[]> {
  const [row] = await connection.run({
    name: 'durability',
    text: `SELECT current_setting('fsync', true), current_setting('full_page_writes', true)`,
  });
  const [fsync, fullPageWrites] = row!;
  const warnings: string[] = [];
  if (fsync === 'off') {
    warnings.push(
      'fsync is off on the PostgreSQL server: plants that were answered 200 are lost, and the database may be destroyed, when the machine fails; set fsync = on',
    );
  }
  if (fullPageWrites === 'off') {
    warnings.push(
      'full_page_writes is off on the PostgreSQL server: a power failure may destroy plants that were stored long ago; set full_page_writes = on',
    );
  }
  if ((await commitsAreNotFlushed(connection)) && (await isStillSo(connect))) {
    warnings.push(
      'synchronous_commit is off on the PostgreSQL server, or for this role or database: this service turns it on for its own plants, what else writes there may be lost; set synchronous_commit = on',
    );
  }
  return warnings;
}

/** Whether synchronous_commit is off by default, before this service turns it on for its connections. */
async function commitsAreNotFlushed(connection: Connection): Promise<boolean> {
  const [row] = await connection.run({
    name: 'commit_default',
    text: `SELECT reset_val FROM pg_settings WHERE name = 'synchronous_commit'`,
  });
  return row?.[0] === 'off';
}

/** The setting of a role or database is read when a session starts: only a new one knows whether it was fixed. */
async function isStillSo(connect: () => Promise<Connection>): Promise<boolean> {
  const connection = await connect().catch(() => undefined);
  if (connection === undefined) return true;
  try {
    return await commitsAreNotFlushed(connection);
  } finally {
    await connection.close();
  }
}
