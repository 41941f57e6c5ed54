import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import { PostgresServer } from './postgres-server.ts';
import { until } from './until.ts';

/** The interval of the check whether the standby accepts writes. */
const CHECK_INTERVAL_MS = 2;

export type SynchronousPair = Awaited<ReturnType<typeof startSynchronousPair>>;

/** A primary, with a synchronous standby: it has each commit before the primary confirms it. */
export async function startSynchronousPair() {
  const primary = await PostgresServer.start();
  const database = await primary.createDatabase();
  // Copied before the primary has this setting, so that the promoted standby does not wait for a
  // standby.
  const standby = await primary.standby();
  await primary.set({ synchronous_standby_names: 'standby' });
  const isSynchronous = (): Promise<void> =>
    until('the standby follows', async () => {
      const rows = await primary.query('SELECT sync_state FROM pg_stat_replication');
      return rows[0]?.sync_state === 'sync';
    });
  await isSynchronous();
  return {
    primary,
    standby,
    database,
    standbyDatabase: database.replace(`:${primary.port}/`, `:${standby.port}/`),
    /** Settles when commits on the primary wait for the standby, and the standby confirms them. */
    isSynchronous,
    /** @returns the URL with both hosts, the named one first */
    url: (first: 'primary' | 'standby'): string => {
      const ports = [primary.port, standby.port];
      const [one, two] = first === 'primary' ? ports : ports.toReversed();
      return database.replace(`127.0.0.1:${primary.port}`, `127.0.0.1:${one},127.0.0.1:${two}`);
    },
    /** @returns when the standby first accepted writes, on the monotonic clock */
    promote: async (): Promise<number> => {
      const client = new pg.Client({ connectionString: standby.url('postgres') });
      await client.connect();
      const promoted = standby.promote();
      for (;;) {
        const { rows } = await client.query('SELECT pg_is_in_recovery() AS follows');
        if (rows[0].follows === false) break;
        await wait(CHECK_INTERVAL_MS);
      }
      const acceptsWritesAt = performance.now();
      await promoted;
      await client.end();
      return acceptsWritesAt;
    },
    [Symbol.asyncDispose]: async (): Promise<void> => {
      await standby[Symbol.asyncDispose]();
      await primary[Symbol.asyncDispose]();
    },
  };
}
