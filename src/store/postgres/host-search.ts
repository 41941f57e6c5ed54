import { setTimeout as wait } from 'node:timers/promises';
import { StoreUnavailable } from '../plant-store.ts';
import { Connection } from './connection.ts';
import { isRejection, openFailure, saysReadOnly } from './failure.ts';
import { CONNECT_TIMEOUT_MS, SEARCH_INTERVAL_MS } from './limits.ts';
import type { HostAddress, PostgresAddress } from './postgres-url.ts';

/**
 * Finds the host that takes writes among those of the address, what libpq calls `target_session_attrs=read-write`.
 *
 * libpq asks one host after the other, and waits for the timeout of each that is silent. Here they are asked side by
 * side, so that a host that hangs does not delay the one that took over.
 */
export class HostSearch {
  readonly #address: PostgresAddress;
  #current: HostAddress | undefined;
  #suspect: HostAddress | undefined;
  /** One for each search in flight; aborting it ends the search and all its connections. */
  readonly #inFlight = new Set<AbortController>();
  #closed = false;

  constructor(address: PostgresAddress) {
    this.#address = address;
  }

  /**
   * Connects to a store that is being opened.
   *
   * @param prepare checks that the store can be used, and may make it
   * @returns the connection, and what `prepare` returned
   * @throws {StoreRefused} when no host can be reached now, or the database cannot be used
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
   * Connects to the host that took writes last. When that one failed, the others are asked before it: it may answer
   * and not be what it was.
   *
   * @throws what the host said from whose answer a person learns most
   */
  async connect(): Promise<Connection> {
    const { hosts } = this.#address;
    const first =
      this.#current === undefined ? hosts.filter(host => host !== this.#suspect) : [this.#current];
    const failureOf = new Map<HostAddress, unknown>();
    // When `first` is all of them, asking again would only fail again, after as long.
    for (const group of first.length < hosts.length ? [first, hosts] : [hosts]) {
      if (this.#closed) break;
      // Whatever connect_timeout is, the other hosts do not wait longer than this for the first group.
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
      failures.find(saysReadOnly) ??
      failures[0] ??
      new StoreUnavailable('the store is closed')
    );
  }

  /** A connection to this host failed: from here on the others are asked first. */
  suspect(host: HostAddress): void {
    this.#suspect = host;
    if (this.#current === host) this.#current = undefined;
  }

  /** Gives up every search in flight. */
  close(): void {
    this.#closed = true;
    for (const search of this.#inFlight) search.abort();
  }

  /**
   * Asks until one takes writes or each has failed. While one is silent the others are asked again: a standby that is
   * about to take over says until then that it takes no writes.
   *
   * @param timeoutMs gives up after this; undefined: after what the address allows each host
   */
  async #connectToAny(
    hosts: HostAddress[],
    failureOf: Map<HostAddress, unknown>,
    timeoutMs: number | undefined,
  ): Promise<Connection | undefined> {
    const search = new AbortController();
    const lastRound = new AbortController();
    search.signal.addEventListener('abort', () => lastRound.abort());
    const late = timeoutMs === undefined ? undefined : setTimeout(() => search.abort(), timeoutMs);
    this.#inFlight.add(search);
    const failed = new Set<HostAddress>();
    const attempts = hosts.map(async host => {
      for (;;) {
        try {
          const connection = await Connection.open(this.#address, host, search.signal);
          if (search.signal.aborted) connection.destroy();
          search.signal.throwIfAborted();
          search.abort();
          return connection;
        } catch (error) {
          search.signal.throwIfAborted();
          failureOf.set(host, error);
          if (failed.add(host).size === hosts.length) lastRound.abort();
          // A password that is rejected ten times a second may lock its account.
          if (isRejection(error)) throw error;
        }
        await wait(SEARCH_INTERVAL_MS, undefined, { signal: lastRound.signal });
      }
    });
    const connection = await Promise.any(attempts).catch(() => undefined);
    clearTimeout(late);
    this.#inFlight.delete(search);
    return connection;
  }
}
