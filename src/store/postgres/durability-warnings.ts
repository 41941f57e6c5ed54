import type { Connection, TextRow } from './connection.ts';

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
  const [fsync, fullPageWrites, commitDefault] = await settingsOf(connection);
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
  if (commitDefault === 'off' && (await isStillOff(connect))) {
    warnings.push(
      'synchronous_commit is off on the PostgreSQL server, or for this role or database: this service turns it on for its own plants, what else writes there may be lost; set synchronous_commit = on',
    );
  }
  return warnings;
}

/** fsync, full_page_writes, and what synchronous_commit was before this service turned it on for its connections. */
async function settingsOf(connection: Connection): Promise<TextRow> {
  const [row] = await connection.run({
    name: 'durability',
    text: `SELECT current_setting('fsync', true), current_setting('full_page_writes', true),
      (SELECT reset_val FROM pg_settings WHERE name = 'synchronous_commit')`,
  });
  return row!;
}

/** The setting of a role or database is read when a session starts: only a new one knows whether it was fixed. */
async function isStillOff(connect: () => Promise<Connection>): Promise<boolean> {
  const connection = await connect().catch(() => undefined);
  if (connection === undefined) return true;
  try {
    const [, , commitDefault] = await settingsOf(connection);
    return commitDefault === 'off';
  } finally {
    await connection.close();
  }
}
