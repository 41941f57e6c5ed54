import { setTimeout as wait } from 'node:timers/promises';
import { POSTGRES_OPERATION_WAIT_MS, POSTGRES_SEARCH_INTERVAL_MS } from '../../contract/limits.ts';
import { StoreUnavailable } from '../plant-store.ts';
import type { Connection } from './connection.ts';
import { kindOf, NoAnswer, sqlStateOf, TOO_MANY_CONNECTIONS, unavailable } from './failure.ts';
import type { HostSearch } from './host-search.ts';

/** Before a serialization failure or deadlock is tried again, at most so long for each attempt so far. */
const RETRY_WAIT_MS = 5;
/** After the server had no connection left for us, those that are open are made do with for this long. */
const FULL_WAIT_MS = 1_000;
/** With less than this left no statement is begun: one that is given up takes every idle connection with it. */
const STATEMENT_NEEDS_MS = 20;

interface Outage {
  /** When the attempt that failed first was begun, on the clock that is never set. */
  since: number;
  cause: unknown;
}

/**
 * The connections of one service.
 *
 * It is in one of two states:
 *
 * - *up*: a connection is opened when one is needed and none is idle. For a while after the server had none left, an
 *   operation waits for one that is open instead, if there is any.
 * - *away*, from the first connection that failed or could not be opened: all hosts are asked over and over until one
 *   takes writes. An operation waits for that until it is out of time, and once the outage has lasted as long as an
 *   operation may take, further ones fail at once: a plant that has waited for another batch to fail is not kept
 *   waiting as long again.
 */
export class ConnectionPool {
  readonly #search: HostSearch;
  readonly #connectionsMax: number;
  readonly #idle: Connection[] = [];
  /** Open, or being opened. */
  #count = 0;
  #outage: Outage | undefined;
  #fullUntil = 0;
  #change = Promise.withResolvers<void>();
  #closed = false;

  constructor(search: HostSearch, connectionsMax: number) {
    this.#search = search;
    this.#connectionsMax = connectionsMax;
  }

  /** Open, or being opened. */
  get connections(): number {
    return this.#count;
  }

  /**
   * Does something with a connection, and again with the same or another one for as long as it fails in a way that
   * passes and there is time.
   *
   * @param work settles by itself what an earlier attempt may have done
   * @throws {StoreUnavailable}
   */
  async use<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    const deadline = performance.now() + POSTGRES_OPERATION_WAIT_MS;
    for (let attempt = 1; ; attempt++) {
      const connection = await this.#acquire(deadline - STATEMENT_NEEDS_MS);
      connection.deadline = deadline;
      const startedAt = performance.now();
      try {
        const result = await work(connection);
        this.#release(connection);
        return result;
      } catch (error) {
        const kind = kindOf(error);
        // Out of time by what it did before, it says nothing of the server.
        if (error instanceof NoAnswer && error.cutShort) this.#drop(connection);
        else if (kind === 'connectionLost') this.#lost(connection, startedAt, error);
        else this.#release(connection);
        if (kind === 'final' || deadline - performance.now() < STATEMENT_NEEDS_MS) throw unavailable(error);
        if (kind === 'retry') await wait(Math.random() * RETRY_WAIT_MS * attempt);
      }
    }
  }

  /** Takes a connection that was opened elsewhere into the pool. */
  add(connection: Connection): void {
    this.#count++;
    this.#release(connection);
  }

  /** Lets go of every connection; one in use goes when its operation ends. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#search.close();
    this.#announceChange();
    await Promise.all(this.#idle.splice(0).map(connection => connection.close()));
  }

  async #acquire(deadline: number): Promise<Connection> {
    for (;;) {
      if (this.#closed) throw new StoreUnavailable('the store is closed');
      const now = performance.now();
      const idle = now < deadline ? this.#takeIdle() : undefined;
      if (idle !== undefined) return idle;
      const outage = this.#outage;
      const giveUpAt = Math.min(deadline, (outage?.since ?? now) + POSTGRES_OPERATION_WAIT_MS);
      if (now >= giveUpAt) {
        throw unavailable(
          outage?.cause ?? new StoreUnavailable('no connection to the store was free in time'),
        );
      }
      // Not waited for: it may take longer than this operation has, and serves the next one then.
      if (outage === undefined && this.#mayOpen(now)) void this.#open(now);
      await this.#nextChange(giveUpAt - now);
    }
  }

  #mayOpen(now: number): boolean {
    return this.#count < this.#connectionsMax && (now >= this.#fullUntil || this.#count === 0);
  }

  async #open(startedAt: number): Promise<void> {
    this.#count++;
    try {
      this.#release(await this.#search.connect());
    } catch (error) {
      this.#count--;
      if (sqlStateOf(error) === TOO_MANY_CONNECTIONS && this.#count > 0) {
        this.#fullUntil = performance.now() + FULL_WAIT_MS;
        this.#announceChange();
      } else {
        this.#beginOutage(startedAt, error);
      }
    }
  }

  #takeIdle(): Connection | undefined {
    for (;;) {
      const connection = this.#idle.pop();
      if (connection === undefined || !connection.isBroken) return connection;
      this.#count--;
    }
  }

  #release(connection: Connection): void {
    connection.deadline = Number.POSITIVE_INFINITY;
    if (connection.isBroken || this.#closed || this.#count > this.#connectionsMax) {
      this.#count--;
      void connection.close();
    } else {
      this.#idle.push(connection);
    }
    this.#announceChange();
  }

  #drop(connection: Connection): void {
    connection.destroy();
    this.#count--;
    this.#announceChange();
  }

  /** Those that are idle have lost their server too, or find out at the cost of somebody's time. */
  #lost(connection: Connection, startedAt: number, cause: unknown): void {
    for (const each of [connection, ...this.#idle.splice(0)]) {
      each.destroy();
      this.#count--;
    }
    this.#search.suspect(connection.host);
    this.#beginOutage(startedAt, cause);
  }

  #beginOutage(since: number, cause: unknown): void {
    if (this.#outage !== undefined) return;
    this.#outage = { since, cause };
    this.#announceChange();
    void this.#endOutage(this.#outage);
  }

  async #endOutage(outage: Outage): Promise<void> {
    while (!this.#closed) {
      try {
        const connection = await this.#search.connect();
        this.#outage = undefined;
        this.add(connection);
        return;
      } catch (error) {
        outage.cause = error;
      }
      await wait(POSTGRES_SEARCH_INTERVAL_MS, undefined, { ref: false });
    }
  }

  /** Wakes everyone who waits for a connection; they are a handful. */
  #announceChange(): void {
    this.#change.resolve();
    this.#change = Promise.withResolvers();
  }

  async #nextChange(waitMs: number): Promise<void> {
    const deadline = new AbortController();
    const late = wait(waitMs, undefined, { signal: deadline.signal }).catch(() => {});
    await Promise.race([this.#change.promise, late]);
    deadline.abort();
  }
}
