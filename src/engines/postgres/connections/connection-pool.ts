import { type Clock, SYSTEM_CLOCK, sleep } from '../../../core/clock.ts';
import { StoreUnavailable } from '../../../core/commit/store-errors.ts';
import { OPERATION_TIMEOUT_MS } from '../connection.ts';
import { ConnectionLost, kindOf, NoResponse, unavailable } from '../postgres-errors.ts';
import type { Pool, StoreConnection } from '../topology/topology.ts';
import { type HostSearch, SEARCH_INTERVAL_MS } from './host-search.ts';

/** Maximum delay after a serialization failure or deadlock, multiplied by the attempts so far. */
const RETRY_DELAY_MS = 5;
/** Delay before the next new connection, after one could not be opened beside others. */
const REOPEN_INTERVAL_MS = 1_000;

type PoolState = { kind: 'up' } | Outage | { kind: 'closed' };

interface Outage {
  kind: 'outage';
  /** When the attempt that failed first was started, on the monotonic clock. */
  since: number;
  /** The last failure of a connection. */
  cause: unknown;
}

/**
 * The connections of one service.
 *
 * | state  | event                                          | next   | what the pool does         |
 * | ------ | ---------------------------------------------- | ------ | -------------------------- |
 * | up     | an operation needs a connection, none is idle  | up     | opens one, up to the limit |
 * | up     | a connection cannot be opened beside others    | up     | opens none for             |
 * |        |                                                |        | `REOPEN_INTERVAL_MS`       |
 * | up     | our own code fails during an operation         | up     | closes its connection      |
 * | up     | the server reports that another one failed     | up     | retries after a delay      |
 * | up     | a connection fails, or the only one cannot be  | outage | closes all idle ones, then |
 * |        | opened                                         |        | searches all hosts         |
 * | outage | an operation needs a connection                | outage | lets the operation wait    |
 * | outage | `OPERATION_TIMEOUT_MS` after the outage began  | outage | operations fail at once    |
 * | outage | a host accepts writes                          | up     | waiting operations resume  |
 * | any    | the service closes the pool                    | closed | operations fail at once    |
 *
 * A server may be full, or too busy to accept a connection in time, while it executes statements. If
 * it has failed, the open connections show it.
 *
 * During a long outage operations fail at once. Otherwise a plant would wait for two timeouts: in
 * the queue behind a failing batch, and in its own batch.
 */
export class ConnectionPool implements Pool {
  readonly #search: HostSearch;
  readonly #connectionsMax: number;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #idle: StoreConnection[] = [];
  #count = 0;
  #state: PoolState = { kind: 'up' };
  #reopenAt = 0;
  #change = Promise.withResolvers<void>();

  /** @param random draws from 0 to 1 */
  constructor(search: HostSearch, connectionsMax: number, clock: Clock = SYSTEM_CLOCK, random = Math.random) {
    this.#search = search;
    this.#connectionsMax = connectionsMax;
    this.#clock = clock;
    this.#random = random;
  }

  get connections(): number {
    return this.#count;
  }

  async use<T>(
    work: (connection: StoreConnection) => Promise<T>,
    deadline = this.#clock.now() + OPERATION_TIMEOUT_MS,
  ): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      const connection = await this.#acquire(deadline);
      connection.deadline = deadline;
      const startedAt = this.#clock.now();
      try {
        const result = await work(connection);
        this.#release(connection);
        return result;
      } catch (error) {
        const kind = kindOf(error, connection.topology.spansServers);
        // The statement had too little time left, so the host may still work.
        if (error instanceof NoResponse && error.cutShort) this.#discard(connection);
        else if (kind === 'connectionLost') this.#connectionLost(connection, startedAt, error);
        // A statement or a transaction may still be open.
        else if (kind === 'internal') this.#discard(connection);
        else this.#release(connection);
        if (kind === 'final' || kind === 'internal' || this.#clock.now() >= deadline)
          throw unavailable(error);
        if (kind === 'otherServerLost') await sleep(this.#clock, SEARCH_INTERVAL_MS);
        if (kind === 'retry') await sleep(this.#clock, this.#random() * RETRY_DELAY_MS * attempt);
      }
    }
  }

  /** Adds a connection that is open and prepared. */
  add(connection: StoreConnection): void {
    this.#count++;
    this.#release(connection);
  }

  async close(): Promise<void> {
    this.#state = { kind: 'closed' };
    this.#search.close();
    this.#announceChange();
    await Promise.all(this.#idle.splice(0).map(connection => connection.close()));
  }

  async #acquire(deadline: number): Promise<StoreConnection> {
    for (;;) {
      const state = this.#state;
      if (state.kind === 'closed') throw new StoreUnavailable('the store is closed');
      const now = this.#clock.now();
      const idle = now < deadline ? this.#takeIdle() : undefined;
      if (idle !== undefined) return idle;
      const isOutage = state.kind === 'outage';
      const giveUpAt = Math.min(deadline, (isOutage ? state.since : now) + OPERATION_TIMEOUT_MS);
      if (now >= giveUpAt) {
        const noneFree = 'no connection to the store was free in time';
        throw unavailable(isOutage ? state.cause : new ConnectionLost(noneFree));
      }
      const mayOpen = this.#count === 0 || (this.#count < this.#connectionsMax && now >= this.#reopenAt);
      // The next operation uses a connection that opens too late for this one.
      if (!isOutage && mayOpen) void this.#open(now);
      await this.#nextChange(giveUpAt - now);
    }
  }

  async #open(startedAt: number): Promise<void> {
    this.#count++;
    try {
      this.#release(await this.#search.connect());
    } catch (error) {
      this.#count--;
      if (this.#count > 0) {
        this.#reopenAt = this.#clock.now() + REOPEN_INTERVAL_MS;
        this.#announceChange();
      } else {
        this.#beginOutage(startedAt, error);
      }
    }
  }

  #takeIdle(): StoreConnection | undefined {
    for (;;) {
      const connection = this.#idle.pop();
      if (connection === undefined || !connection.isBroken) return connection;
      this.#count--;
    }
  }

  #release(connection: StoreConnection): void {
    connection.deadline = Number.POSITIVE_INFINITY;
    if (connection.isBroken || this.#state.kind === 'closed' || this.#count > this.#connectionsMax) {
      this.#count--;
      void connection.close();
    } else {
      this.#idle.push(connection);
    }
    this.#announceChange();
  }

  #discard(connection: StoreConnection): void {
    connection.destroy();
    this.#count--;
    this.#announceChange();
  }

  /** Also closes idle connections, because an operation on one of them would probably fail, too. */
  #connectionLost(connection: StoreConnection, startedAt: number, cause: unknown): void {
    for (const each of [connection, ...this.#idle.splice(0)]) this.#discard(each);
    this.#search.suspect(connection.host);
    this.#beginOutage(startedAt, cause);
  }

  #beginOutage(since: number, cause: unknown): void {
    if (this.#state.kind !== 'up') return;
    const outage: Outage = { kind: 'outage', since, cause };
    this.#state = outage;
    this.#announceChange();
    void this.#endOutage(outage);
  }

  async #endOutage(outage: Outage): Promise<void> {
    while (this.#state === outage) {
      try {
        const connection = await this.#search.connect();
        if (this.#state === outage) this.#state = { kind: 'up' };
        this.add(connection);
        return;
      } catch (error) {
        outage.cause = error;
      }
      await new Promise<void>(resolve => this.#clock.setTimer(resolve, SEARCH_INTERVAL_MS, false));
    }
  }

  /** Wakes every operation that waits for a connection. There are only a few. */
  #announceChange(): void {
    this.#change.resolve();
    this.#change = Promise.withResolvers();
  }

  /** Waits for a change. A timeout of one operation wakes all, and each checks the state again. */
  async #nextChange(timeoutMs: number): Promise<void> {
    const timer = this.#clock.setTimer(() => this.#announceChange(), timeoutMs);
    await this.#change.promise;
    timer[Symbol.dispose]();
  }
}
