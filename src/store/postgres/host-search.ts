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
 * `connect` first tries the host that accepted writes last. After its connection failed, `connect`
 * first tries all other hosts: a primary without its standby accepts connections, but confirms no
 * commit. If none of these accepts writes within `CONNECT_TIMEOUT_MS`, it tries all hosts.
 */
export class HostSearch {
  readonly #address: PostgresAddress;
  readonly #prepare: (connection: Connection) => Promise<void>;
  /** The hosts that are tried first. */
  #preferred: readonly HostAddress[];
  readonly #closing = new AbortController();

  /** @param prepare checks every new connection; its error is a failure of the host */
  constructor(address: PostgresAddress, prepare: (connection: Connection) => Promise<void>) {
    this.#address = address;
    this.#preferred = address.hosts;
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
    const preferred = this.#preferred;
    const failureOf = new Map<HostAddress, unknown>();
    // With all hosts a second attempt would fail again.
    const connection =
      (preferred.length < hosts.length &&
        (await this.#connectToAny(preferred, failureOf, AbortSignal.timeout(CONNECT_TIMEOUT_MS)))) ||
      (await this.#connectToAny(hosts, failureOf));
    this.#preferred = connection ? [connection.host] : hosts;
    if (connection) return connection;
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
    if (this.#preferred.includes(host)) this.#preferred = this.#address.hosts.filter(each => each !== host);
  }

  /** Aborts every search in flight. */
  close(): void {
    this.#closing.abort();
  }

  /** @param onOpen is called when nothing can fail any more */
  async #open(host: HostAddress, signal: AbortSignal, onOpen: () => void): Promise<Connection> {
    const connection = await Connection.open(this.#address, host, signal);
    try {
      await this.#prepare(connection);
      signal.throwIfAborted();
      onOpen();
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
   * @param timeout ends the search; undefined: only the timeout of each connection applies, which
   *   may be much longer
   * @returns undefined when no host accepted writes
   */
  async #connectToAny(
    hosts: readonly HostAddress[],
    failureOf: Map<HostAddress, unknown>,
    timeout?: AbortSignal,
  ): Promise<Connection | undefined> {
    const found = new AbortController();
    const allFailed = new AbortController();
    const search = AbortSignal.any([found.signal, this.#closing.signal, ...(timeout ? [timeout] : [])]);
    const retries = AbortSignal.any([search, allFailed.signal]);
    const failed = new Set<HostAddress>();
    const attempts = hosts.map(async host => {
      for (;;) {
        try {
          // The abort ends the attempts at other hosts at once, so no second one succeeds.
          return await this.#open(host, search, () => found.abort());
        } catch (error) {
          search.throwIfAborted();
          failureOf.set(host, error);
          if (failed.add(host).size === hosts.length) allFailed.abort();
          if (isRejection(error)) throw error;
        }
        await wait(SEARCH_INTERVAL_MS, undefined, { signal: retries });
      }
    });
    return Promise.any(attempts).catch(() => undefined);
  }
}
