import { type Clock, SYSTEM_CLOCK, sleep } from '../../../core/clock.ts';
import { StoreUnavailable } from '../../../core/commit/store-errors.ts';
import { HostIsReadOnly, isRejection, openFailure } from '../postgres-errors.ts';
import {
  CONNECT_TIMEOUT_MS,
  type HostAddress,
  type PostgresAddress,
  shownPostgresAddress,
} from '../postgres-url.ts';
import type { StoreConnection } from '../topology/topology.ts';
import { PgConnection } from './pg-connection.ts';

/** Delay between two attempts at a host, and between two searches during an outage. */
export const SEARCH_INTERVAL_MS = 100;

/** How long the first connection may take. */
export interface FirstConnection {
  /** Timeout of each attempt, unless the address has one. */
  timeoutMs: number;
  /** Called with a log message if the connection takes longer than 1.5 s. */
  onWait?: (message: string) => void;
}

/** As {@link PgConnection.open}. */
type OpenConnection = (...args: Parameters<typeof PgConnection.open>) => Promise<StoreConnection>;

/**
 * Finds the host that accepts writes, like libpq with `target_session_attrs=read-write`. It tries
 * hosts in parallel, so a silent host does not delay a failover to another one.
 *
 * The host that accepted writes last has a head start. After its connection has failed, all other
 * hosts have the head start, because a primary without its standby accepts connections, but
 * confirms no commit.
 */
export class HostSearch {
  readonly #address: PostgresAddress;
  readonly #prepare: (connection: StoreConnection) => Promise<void>;
  readonly #clock: Clock;
  readonly #openConnection: OpenConnection;
  #preferred: readonly HostAddress[];
  readonly #closing = new AbortController();

  /** @param prepare checks every new connection; its error is a failure of the host */
  constructor(
    address: PostgresAddress,
    prepare: (connection: StoreConnection) => Promise<void>,
    clock: Clock = SYSTEM_CLOCK,
    openConnection: OpenConnection = PgConnection.open,
  ) {
    this.#address = address;
    this.#preferred = address.hosts;
    this.#prepare = prepare;
    this.#clock = clock;
    this.#openConnection = openConnection;
  }

  /**
   * Connects for the first time.
   *
   * @param prepare may create the store; its result is returned
   * @throws {StoreRejected} if the store cannot be opened
   */
  async open<Prepared>(
    prepare: (connection: StoreConnection) => Promise<Prepared>,
    { timeoutMs, onWait }: FirstConnection = { timeoutMs: CONNECT_TIMEOUT_MS },
  ): Promise<{ connection: StoreConnection; prepared: Prepared }> {
    const { connectTimeoutMs = timeoutMs } = this.#address;
    const waiting = this.#clock.setTimer(() => {
      const store = shownPostgresAddress(this.#address);
      const seconds = Math.round(connectTimeoutMs / 1_000);
      onWait?.(`waiting up to ${seconds} s for ${store}, which has not accepted the connection yet`);
    }, CONNECT_TIMEOUT_MS);
    let connection: StoreConnection | undefined;
    try {
      connection = await this.connect(connectTimeoutMs).finally(() => waiting[Symbol.dispose]());
      return { connection, prepared: await prepare(connection) };
    } catch (error) {
      connection?.destroy();
      throw openFailure(error, this.#address);
    }
  }

  /**
   * Connects to the host that accepts writes.
   *
   * | result of an attempt        | what follows                                                |
   * | --------------------------- | ----------------------------------------------------------- |
   * | the host accepts writes     | return its connection, abort the attempts at other hosts    |
   * | it rejects the client       | stop for this host: wrong passwords may lock the account    |
   * | it fails in another way, or | retry it every `SEARCH_INTERVAL_MS`, since a standby may    |
   * | is read-only                | take over; stop when every host has failed at least once    |
   *
   * The head start ends after `CONNECT_TIMEOUT_MS`, or when every host that has it failed once.
   *
   * @throws the most helpful failure: a rejection, else a read-only host, else the first failure
   */
  async connect(timeoutMs = this.#address.connectTimeoutMs ?? CONNECT_TIMEOUT_MS): Promise<StoreConnection> {
    const { hosts } = this.#address;
    const preferred = this.#preferred;
    const found = new AbortController();
    const preferredFailed = new AbortController();
    const allFailed = new AbortController();
    const search = AbortSignal.any([found.signal, this.#closing.signal]);
    const headStart = AbortSignal.any([search, preferredFailed.signal]);
    const retries = AbortSignal.any([search, allFailed.signal]);
    const failureOf = new Map<HostAddress, unknown>();
    const attempts = hosts.map(async host => {
      if (!preferred.includes(host)) {
        await sleep(this.#clock, CONNECT_TIMEOUT_MS, headStart);
      }
      for (;;) {
        let opened: StoreConnection | undefined;
        try {
          opened = await this.#openConnection(this.#address, host, timeoutMs, search, this.#clock);
          await this.#prepare(opened);
          search.throwIfAborted();
          // The attempts at other hosts end at once, so no second attempt succeeds.
          found.abort();
          return opened;
        } catch (error) {
          opened?.destroy();
          search.throwIfAborted();
          failureOf.set(host, error);
          if (preferred.every(each => failureOf.has(each))) preferredFailed.abort();
          if (failureOf.size === hosts.length) allFailed.abort();
          if (isRejection(error)) throw error;
        }
        await sleep(this.#clock, SEARCH_INTERVAL_MS, retries);
        retries.throwIfAborted();
      }
    });
    const connection = await Promise.any(attempts).catch(() => undefined);
    this.#preferred = connection ? [connection.host] : hosts;
    if (connection) return connection;
    const failures = [...failureOf.values()];
    throw (
      failures.find(isRejection) ??
      failures.find(failure => failure instanceof HostIsReadOnly) ??
      failures[0] ??
      new StoreUnavailable('the store is closed')
    );
  }

  /** Gives the other hosts the head start, after a connection to this host failed. */
  suspect(host: HostAddress): void {
    const others = this.#address.hosts.filter(each => each !== host);
    if (others.length > 0 && this.#preferred.includes(host)) this.#preferred = others;
  }

  /** Ends all searches. */
  close(): void {
    this.#closing.abort();
  }
}
