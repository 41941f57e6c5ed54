import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import { PostgresServer } from './postgres-server.ts';
import { until } from './until.ts';

/** How often the standby is asked whether it takes writes. */
const ASK_INTERVAL_MS = 2;

/** A primary, and a standby that has every commit before it is confirmed. */
export class SynchronousPair implements AsyncDisposable {
  readonly primary: PostgresServer;
  readonly standby: PostgresServer;
  /** Of the address of the database on the primary. */
  readonly database: string;

  private constructor(primary: PostgresServer, standby: PostgresServer, database: string) {
    this.primary = primary;
    this.standby = standby;
    this.database = database;
  }

  static async start(): Promise<SynchronousPair> {
    const primary = await PostgresServer.start();
    const database = await primary.createDatabase();
    // Copied before the primary waits for a standby: the copy waits for none once it is promoted.
    const standby = await primary.standby();
    await primary.set({ synchronous_standby_names: 'standby' });
    const pair = new SynchronousPair(primary, standby, database);
    await pair.isSynchronous();
    return pair;
  }

  /** Settles when commits on the primary wait for the standby, and do not wait in vain. */
  async isSynchronous(): Promise<void> {
    await until('the standby follows', async () => {
      const rows = await this.primary.query('SELECT sync_state FROM pg_stat_replication');
      return rows[0]?.sync_state === 'sync';
    });
  }

  /** Of both hosts, in this order. */
  url(first: 'primary' | 'standby'): string {
    const ports = [this.primary.port, this.standby.port];
    const [one, two] = first === 'primary' ? ports : ports.toReversed();
    return this.database.replace(`127.0.0.1:${this.primary.port}`, `127.0.0.1:${one},127.0.0.1:${two}`);
  }

  /** The database on the standby alone. */
  get standbyDatabase(): string {
    return this.database.replace(`:${this.primary.port}/`, `:${this.standby.port}/`);
  }

  /** @returns when the standby took writes, by the monotonic clock */
  async promote(): Promise<number> {
    const client = new pg.Client({ connectionString: this.standby.url('postgres') });
    await client.connect();
    const promoted = this.standby.promote();
    for (;;) {
      const { rows } = await client.query('SELECT pg_is_in_recovery() AS follows');
      if (rows[0].follows === false) break;
      await wait(ASK_INTERVAL_MS);
    }
    const takesWritesAt = performance.now();
    await promoted;
    await client.end();
    return takesWritesAt;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.standby[Symbol.asyncDispose]();
    await this.primary[Symbol.asyncDispose]();
  }
}
