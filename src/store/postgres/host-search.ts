import { setTimeout as wait } from 'node:timers/promises';
import { POSTGRES_CONNECT_WAIT_MS, POSTGRES_SEARCH_INTERVAL_MS } from '../../contract/limits.ts';
import { StoreUnavailable } from '../plant-store.ts';
import { Connection } from './connection.ts';
import { isRefusal, saysReadOnly } from './failure.ts';
import type { HostAddress, PostgresAddress } from './postgres-url.ts';

/**
 * Finds the host that takes writes among those of the address, what libpq calls `target_session_attrs=read-write`.
 *
 * libpq asks one host after the other, and waits its time out for each that is silent. Here they are asked side by
 * side, so that a host that hangs does not delay the one that took over.
 */
export class HostSearch {
  readonly #address: PostgresAddress;
  #current: HostAddress | undefined;
  #suspect: HostAddress | undefined;
  /** For each search that is under way; aborted, it is over and leaves nothing behind. */
  readonly #underWay = new Set<AbortController>();
  #closed = false;

  constructor(address: PostgresAddress) {
    this.#address = address;
  }

  /**
   * Connects to the host that took writes last, else to the first of the others that answers. When it is not known which
   * one that was, because it failed, it comes after the others: it may answer and not be what it was.
   *
   * @throws what the host said from whose answer a person learns most
   */
  async connect(): Promise<Connection> {
    const { hosts } = this.#address;
    const first =
      this.#current === undefined ? hosts.filter(host => host !== this.#suspect) : [this.#current];
    // Those that have failed all together would only fail again, after as long.
    const groups = first.length < hosts.length ? [first, hosts] : [hosts];
    const failureOf = new Map<HostAddress, unknown>();
    for (const group of groups) {
      if (this.#closed) break;
      // However long an address lets its hosts be silent, the others do not wait behind them for that.
      const waitMs = group === hosts ? undefined : POSTGRES_CONNECT_WAIT_MS;
      const connection = await this.#connectToAny(group, failureOf, waitMs);
      if (connection !== undefined) {
        this.#current = connection.host;
        return connection;
      }
    }
    this.#current = undefined;
    const failures = [...failureOf.values()];
    throw (
      failures.find(isRefusal) ??
      failures.find(saysReadOnly) ??
      failures[0] ??
      new StoreUnavailable('the store is closed')
    );
  }

  /** A connection to this host failed: the others are asked first from here on. */
  suspect(host: HostAddress): void {
    this.#suspect = host;
    if (this.#current === host) this.#current = undefined;
  }

  /** Gives up what is under way: nobody waits for it any more. */
  close(): void {
    this.#closed = true;
    for (const search of this.#underWay) search.abort();
  }

  /**
   * Asks until one takes writes or each has failed. While one is silent the others are asked again, unless a person must do
   * something first: the standby that takes over says until then that it does not take writes.
   *
   * @param waitMs gives up after this; undefined for as long as the address lets them take
   */
  async #connectToAny(
    hosts: HostAddress[],
    failureOf: Map<HostAddress, unknown>,
    waitMs: number | undefined,
  ): Promise<Connection | undefined> {
    const search = new AbortController();
    const lastRound = new AbortController();
    search.signal.addEventListener('abort', () => lastRound.abort());
    const late = waitMs === undefined ? undefined : setTimeout(() => search.abort(), waitMs);
    this.#underWay.add(search);
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
          // A password that is refused ten times a second may lock its account.
          if (isRefusal(error)) throw error;
        }
        await wait(POSTGRES_SEARCH_INTERVAL_MS, undefined, { signal: lastRound.signal });
      }
    });
    const connection = await Promise.any(attempts).catch(() => undefined);
    clearTimeout(late);
    this.#underWay.delete(search);
    return connection;
  }
}
