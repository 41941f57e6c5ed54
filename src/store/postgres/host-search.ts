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
    const rest = hosts.filter(host => !first.includes(host));
    const failures: unknown[] = [];
    for (const group of [first, rest]) {
      const connection = await this.#connectToAny(group, failures);
      if (connection !== undefined) {
        this.#current = connection.host;
        return connection;
      }
    }
    this.#current = undefined;
    throw failures.find(isRefusal) ?? failures.find(saysReadOnly) ?? failures[0];
  }

  /** A connection to this host failed: the others are asked first from here on. */
  suspect(host: HostAddress): void {
    this.#suspect = host;
    if (this.#current === host) this.#current = undefined;
  }

  async #connectToAny(hosts: HostAddress[], failures: unknown[]): Promise<Connection | undefined> {
    let first: Connection | undefined;
    const attempts = hosts.map(async host => {
      try {
        const connection = await Connection.open(this.#address, host);
        first ??= connection;
        if (first !== connection) connection.destroy();
        return connection;
      } catch (error) {
        failures.push(error);
        throw error;
      }
    });
    return await Promise.any(attempts).catch(() => undefined);
  }
}
