import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import { PostgresServer } from './postgres-server.ts';
import { until } from './until.ts';

/** The interval of the check whether the standby accepts writes. */
const CHECK_INTERVAL_MS = 2;

/** A primary, with a synchronous standby: it has each commit before the primary confirms it. */
export class SynchronousPair implements AsyncDisposable {
  readonly primary: PostgresServer;
  readonly standby: PostgresServer;
  /** The URL of the database on the primary. */
  readonly database: string;

  private constructor(primary: PostgresServer, standby: PostgresServer, database: string) {
    this.primary = primary;
    this.standby = standby;
    this.database = database;
  }

  static async start(): Promise<SynchronousPair> {
    const primary = await PostgresServer.start();
    const database = await primary.createDatabase();
    // Copied before the primary has this setting, so that the promoted standby does not wait for a
    // standby.
    const standby = await primary.standby();
    await primary.set({ synchronous_standby_names: 'standby' });
    const pair = new SynchronousPair(primary, standby, database);
    await pair.isSynchronous();
    return pair;
  }

  /** Settles when commits on the primary wait for the standby, and the standby confirms them. */
  async isSynchronous(): Promise<void> {
    await until('the standby follows', async () => {
      const rows = await this.primary.query('SELECT sync_state FROM pg_stat_replication');
      return rows[0]?.sync_state === 'sync';
    });
  }

  /** @returns the URL with both hosts, the named one first */
  url(first: 'primary' | 'standby'): string {
    const ports = [this.primary.port, this.standby.port];
    const [one, two] = first === 'primary' ? ports : ports.toReversed();
    return this.database.replace(`127.0.0.1:${this.primary.port}`, `127.0.0.1:${one},127.0.0.1:${two}`);
  }

  /** The URL with only the standby. */
  get standbyDatabase(): string {
    return this.database.replace(`:${this.primary.port}/`, `:${this.standby.port}/`);
  }

  /** @returns when the standby first accepted writes, on the monotonic clock */
  async promote(): Promise<number> {
    const client = new pg.Client({ connectionString: this.standby.url('postgres') });
    await client.connect();
    const promoted = this.standby.promote();
    for (;;) {
      const { rows } = await client.query('SELECT pg_is_in_recovery() AS follows');
      if (rows[0].follows === false) break;
      await wait(CHECK_INTERVAL_MS);
    }
    const acceptsWritesAt = performance.now();
    await promoted;
    await client.end();
    return acceptsWritesAt;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.standby[Symbol.asyncDispose]();
    await this.primary[Symbol.asyncDispose]();
  }
}
