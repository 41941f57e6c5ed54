import { setTimeout as wait } from 'node:timers/promises';
import { StoreUnavailable } from '../plant-store.ts';
import { Connection } from './connection.ts';
import { isReadOnlyError, isRejection, openFailure } from './failure.ts';
import { CONNECT_TIMEOUT_MS, SEARCH_INTERVAL_MS } from './limits.ts';
import type { HostAddress, PostgresAddress } from './postgres-url.ts';

/**
 * Finds the host that accepts writes, like libpq with `target_session_attrs=read-write`.
 *
 * libpq tries one host after the other and waits for the timeout of each silent host. This class
 * tries the hosts in parallel, so a silent host does not delay a failover to another one.
 *
 * `connect` first tries the current host, which accepted writes last. Without a current host it
 * first tries all hosts except the suspect one, whose connection failed last. If none of these
 * accepts writes within `CONNECT_TIMEOUT_MS`, it tries all hosts.
 */
export class HostSearch {
  readonly #address: PostgresAddress;
  readonly #prepare: (connection: Connection) => Promise<void>;
  #current: HostAddress | undefined;
  #suspect: HostAddress | undefined;
  /** One for each search in flight. Its abort ends the search and closes all its connections. */
  readonly #inFlight = new Set<AbortController>();
  #closed = false;

  /** @param prepare checks every new connection; its error is a failure of the host */
  constructor(address: PostgresAddress, prepare: (connection: Connection) => Promise<void>) {
    this.#address = address;
    this.#prepare = prepare;
  }

  /**
   * Connects for the first time, while a store is opened.
   *
   * @param prepare checks the database, and may create the store in it
   * @returns the connection, and the result of `prepare`
   * @throws {StoreRejected} when no host accepts writes now, or the database cannot be used
   */
  async open<T>(prepare: (connection: Connection) => Promise<T>): Promise<[Connection, T]> {
    let connection: Connection | undefined;
    try {
      connection = await this.connect();
      return [connection, await prepare(connection)];
    } catch (error) {
      connection?.destroy();
      throw openFailure(error, this.#address);
    }
  }

  /**
   * Connects to the host that accepts writes. The class comment describes the order of the hosts.
   *
   * @throws the most helpful failure: a rejection, else a read-only host, else the first failure
   */
  async connect(): Promise<Connection> {
    const { hosts } = this.#address;
    const first =
      this.#current === undefined ? hosts.filter(host => host !== this.#suspect) : [this.#current];
    const failureOf = new Map<HostAddress, unknown>();
    // A first group with all hosts is the last group, too: a second attempt would fail again.
    for (const group of first.length < hosts.length ? [first, hosts] : [hosts]) {
      if (this.#closed) break;
      // The last group waits for the first one, and `connect_timeout` may be much longer than this.
      const timeoutMs = group === hosts ? undefined : CONNECT_TIMEOUT_MS;
      const connection = await this.#connectToAny(group, failureOf, timeoutMs);
      if (connection !== undefined) {
        this.#current = connection.host;
        return connection;
      }
    }
    this.#current = undefined;
    const failures = [...failureOf.values()];
    throw (
      failures.find(isRejection) ??
      failures.find(isReadOnlyError) ??
      failures[0] ??
      new StoreUnavailable('the store is closed')
    );
  }

  /** Is called when a connection to this host failed. The next search tries others first. */
  suspect(host: HostAddress): void {
    this.#suspect = host;
    if (this.#current === host) this.#current = undefined;
  }

  /** Aborts every search in flight. */
  close(): void {
    this.#closed = true;
    for (const search of this.#inFlight) search.abort();
  }

  async #open(host: HostAddress, signal: AbortSignal): Promise<Connection> {
    const connection = await Connection.open(this.#address, host, signal);
    try {
      await this.#prepare(connection);
      signal.throwIfAborted();
      return connection;
    } catch (error) {
      connection.destroy();
      throw error;
    }
  }

  /**
   * Tries all hosts of one group in parallel.
   *
   * | result of an attempt        | what follows                                                |
   * | --------------------------- | ----------------------------------------------------------- |
   * | the host accepts writes     | return its connection, abort the attempts at other hosts    |
   * | it rejects the client       | stop for this host: wrong passwords may lock the account    |
   * | it fails in another way, or | retry it every `SEARCH_INTERVAL_MS`, since a standby may    |
   * | is read-only                | take over; stop when every host has failed at least once    |
   *
   * @param failureOf receives the last failure of each host
   * @param timeoutMs ends the search; undefined: only the timeout of each connection applies
   * @returns undefined when no host accepted writes
   */
  async #connectToAny(
    hosts: HostAddress[],
    failureOf: Map<HostAddress, unknown>,
    timeoutMs: number | undefined,
  ): Promise<Connection | undefined> {
    const search = new AbortController();
    const retries = new AbortController();
    search.signal.addEventListener('abort', () => retries.abort());
    const timer = timeoutMs === undefined ? undefined : setTimeout(() => search.abort(), timeoutMs);
    this.#inFlight.add(search);
    const failed = new Set<HostAddress>();
    const attempts = hosts.map(async host => {
      for (;;) {
        try {
          const connection = await this.#open(host, search.signal);
          search.abort();
          return connection;
        } catch (error) {
          search.signal.throwIfAborted();
          failureOf.set(host, error);
          if (failed.add(host).size === hosts.length) retries.abort();
          if (isRejection(error)) throw error;
        }
        await wait(SEARCH_INTERVAL_MS, undefined, { signal: retries.signal });
      }
    });
    const connection = await Promise.any(attempts).catch(() => undefined);
    clearTimeout(timer);
    this.#inFlight.delete(search);
    return connection;
  }
}
