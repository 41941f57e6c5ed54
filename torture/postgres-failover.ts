import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import { openReader } from '../src/store/open-store.ts';
import { faultsOf, type LoggedRequest } from './client-log.ts';
import { PostgresServer } from './postgres-server.ts';
import { type ServeProcess, startServe } from './program.ts';
import { seededRandom } from './seeded-random.ts';
import { SharedLoad } from './shared-load.ts';
import { until } from './until.ts';

const INSTANCES = 3;
/** Plants that are kept before the primary goes, and after the standby took over. */
const KEPT_BEFORE_AND_AFTER = 200;
/**
 * The standby is promoted this long after the primary went, and up to so much later. A primary that is held is missed
 * when a statement has had its time; the search for another is to be on while there is none yet.
 */
const PROMOTED_AFTER_MS = { kill: 0, hold: 2_500 };
const PROMOTED_LATER_MS_MAX = 2_500;
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

  /** @returns when the standby took writes, on the clock that is never set */
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

export interface FailoverFigures {
  kept: number;
  /** Answered 5xx, or not at all. */
  unknown: number;
  /** As client-log.ts names them; none when each promise was kept. */
  faults: string[];
  /** Sent before the standby took writes, and answered after. */
  underWay: number;
  longestAnswerMs: number;
  /** From the moment the standby took writes until the first 200 of any instance, and of the last one. */
  firstBackAfterMs: number;
  allBackAfterMs: number;
}

/**
 * Takes the primary away under the load of three instances, and promotes the standby.
 *
 * @param how `kill` ends every process of the primary at once; `hold` lets it keep every connection and answer nothing
 */
export async function failOverUnderLoad(
  how: 'kill' | 'hold',
  firstHost: 'primary' | 'standby',
  seed: number,
): Promise<FailoverFigures> {
  const random = seededRandom(seed);
  const log: LoggedRequest[] = [];
  await using pair = await SynchronousPair.start();
  const instances: ServeProcess[] = [];
  try {
    while (instances.length < INSTANCES) instances.push(await startServe(pair.url(firstHost)));
    const urls = instances.map(
      ({ url }) =>
        () =>
          url,
    );
    await using load = await SharedLoad.start(urls, pair.database, log, seed);
    await load.keeps(KEPT_BEFORE_AND_AFTER);
    await (how === 'kill' ? pair.primary.kill() : pair.primary.hold('SIGSTOP'));
    await wait(PROMOTED_AFTER_MS[how] + random(PROMOTED_LATER_MS_MAX));
    const takesWritesAt = await pair.promote();
    const backAt = await load.keptByEachAfter(takesWritesAt);
    await load.keeps(KEPT_BEFORE_AND_AFTER);
    await load.stop();
    const reader = await openReader(pair.standbyDatabase);
    const stored = await Array.fromAsync(reader.revisions());
    await reader.close();
    return {
      kept: log.filter(({ answer }) => answer?.status === 200).length,
      unknown: log.filter(({ answer }) => answer === undefined || answer.status >= 500).length,
      faults: faultsOf(log, stored),
      underWay: log.filter(each => each.sentAt < takesWritesAt && each.answeredAt > takesWritesAt).length,
      longestAnswerMs: log.reduce((most, { sentAt, answeredAt }) => Math.max(most, answeredAt - sentAt), 0),
      firstBackAfterMs: Math.min(...backAt) - takesWritesAt,
      allBackAfterMs: Math.max(...backAt) - takesWritesAt,
    };
  } finally {
    await Promise.all(instances.map(each => each.stop('SIGKILL')));
  }
}
