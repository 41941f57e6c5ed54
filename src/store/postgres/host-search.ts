import { setTimeout as wait } from 'node:timers/promises';
import { POSTGRES_SEARCH_INTERVAL_MS } from '../../contract/limits.ts';
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
    const groups = first.length < hosts.length ? [first, hosts] : [first];
    const failureOf = new Map<HostAddress, unknown>();
    for (const group of groups) {
      const connection = await this.#connectToAny(group, failureOf);
      if (connection !== undefined) {
        this.#current = connection.host;
        return connection;
      }
    }
    this.#current = undefined;
    const failures = [...failureOf.values()];
    throw failures.find(isRefusal) ?? failures.find(saysReadOnly) ?? failures[0];
  }

  /** A connection to this host failed: the others are asked first from here on. */
  suspect(host: HostAddress): void {
    this.#suspect = host;
    if (this.#current === host) this.#current = undefined;
  }

  /**
   * Asks until one takes writes or each has failed. While one is silent the others are asked again: the standby that takes
   * over says until then that it does not take writes.
   */
  async #connectToAny(
    hosts: HostAddress[],
    failureOf: Map<HostAddress, unknown>,
  ): Promise<Connection | undefined> {
    let first: Connection | undefined;
    const failed = new Set<HostAddress>();
    const over = new AbortController();
    const attempts = hosts.map(async host => {
      for (;;) {
        try {
          const connection = await Connection.open(this.#address, host);
          first ??= connection;
          if (first !== connection) connection.destroy();
          over.abort();
          return connection;
        } catch (error) {
          failureOf.set(host, error);
          if (failed.add(host).size === hosts.length) over.abort();
        }
        await wait(POSTGRES_SEARCH_INTERVAL_MS, undefined, { signal: over.signal });
      }
    });
    return await Promise.any(attempts).catch(() => undefined);
  }
}
