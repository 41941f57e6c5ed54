import { setTimeout as wait } from 'node:timers/promises';
import { StoreUnavailable } from '../plant-store.ts';
import type { Connection } from './connection.ts';
import { kindOf, NoResponse, sqlStateOf, TOO_MANY_CONNECTIONS, unavailable } from './failure.ts';
import type { HostSearch } from './host-search.ts';
import {
  FULL_SERVER_INTERVAL_MS,
  OPERATION_TIMEOUT_MS,
  RETRY_DELAY_MS,
  SEARCH_INTERVAL_MS,
} from './limits.ts';

interface Outage {
  /** When the attempt that failed first was begun, by the monotonic clock. */
  since: number;
  cause: unknown;
}

/**
 * The connections of one service. It is in one of two states:
 *
 * - *up*: a connection is opened when one is needed and none is idle. For a while after the server had none left, an
 *   operation waits for an open one instead, if there is any.
 * - *outage*, from the first connection that failed or could not be opened: all hosts are asked over and over until
 *   one takes writes. An operation waits for that until its timeout. Once the outage has lasted that long, further
 *   operations fail at once: a plant that has waited for another batch to fail does not wait as long again.
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

  get connections(): number {
    return this.#count;
  }

  /**
   * Runs an operation on a connection, and again on the same or another one while it fails for a passing reason and
   * there is time.
   *
   * @param work finds out by itself what an earlier attempt has done
   * @throws {StoreUnavailable}
   */
  async use<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    const deadline = performance.now() + OPERATION_TIMEOUT_MS;
    for (let attempt = 1; ; attempt++) {
      const connection = await this.#acquire(deadline);
      connection.deadline = deadline;
      const startedAt = performance.now();
      try {
        const result = await work(connection);
        this.#release(connection);
        return result;
      } catch (error) {
        const kind = kindOf(error);
        // Its operation was nearly out of time when it began, so this says nothing of the server.
        if (error instanceof NoResponse && error.cutShort) this.#discard(connection);
        else if (kind === 'connectionLost') this.#lost(connection, startedAt, error);
        else this.#release(connection);
        if (kind === 'final' || performance.now() >= deadline) throw unavailable(error);
        if (kind === 'retry') await wait(Math.random() * RETRY_DELAY_MS * attempt);
      }
    }
  }

  /** Takes a connection that was opened elsewhere into the pool. */
  add(connection: Connection): void {
    this.#count++;
    this.#release(connection);
  }

  /** Closes every connection; one in use when its operation ends. */
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
      const giveUpAt = Math.min(deadline, (outage?.since ?? now) + OPERATION_TIMEOUT_MS);
      if (now >= giveUpAt) {
        throw unavailable(outage?.cause ?? new Error('no connection to the store was free in time'));
      }
      // Not awaited: it may take longer than this operation has, and then serves the next one.
      const mayOpen = this.#count === 0 || (this.#count < this.#connectionsMax && now >= this.#fullUntil);
      if (outage === undefined && mayOpen) void this.#open(now);
      await this.#nextChange(giveUpAt - now);
    }
  }

  async #open(startedAt: number): Promise<void> {
    this.#count++;
    try {
      this.#release(await this.#search.connect());
    } catch (error) {
      this.#count--;
      if (sqlStateOf(error) === TOO_MANY_CONNECTIONS && this.#count > 0) {
        this.#fullUntil = performance.now() + FULL_SERVER_INTERVAL_MS;
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

  #discard(connection: Connection): void {
    connection.destroy();
    this.#count--;
    this.#announceChange();
  }

  /** The idle ones have lost their server too, or would find out at the cost of somebody's time. */
  #lost(connection: Connection, startedAt: number, cause: unknown): void {
    for (const each of [connection, ...this.#idle.splice(0)]) this.#discard(each);
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
      await wait(SEARCH_INTERVAL_MS, undefined, { ref: false });
    }
  }

  /** Wakes every operation that waits for a connection; they are a handful. */
  #announceChange(): void {
    this.#change.resolve();
    this.#change = Promise.withResolvers();
  }

  /** Waking the others too when the time is over does no harm: each looks again. */
  async #nextChange(timeoutMs: number): Promise<void> {
    const late = setTimeout(() => this.#announceChange(), timeoutMs);
    await this.#change.promise;
    clearTimeout(late);
  }
}
