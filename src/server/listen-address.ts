/** The address to listen at; port 0 selects a free port. */
export interface ListenAddress {
  /** A name or an IP address; IPv6 without brackets. */
  host: string;
  port: number;
}

/** In a text, an IPv6 address is in brackets (RFC 3986 section 3.2.2). */
const ADDRESS = /^(?:(?:\[([0-9A-Fa-f:.]+)\]|([^:[\]]+))?:)?([0-9]{1,5})$/;
const LOOPBACK = /^(?:localhost|127\.[0-9.]+|::1)$/;

/**
 * Parses HOST:PORT or PORT. A port alone means the loopback address, which the network cannot reach.
 *
 * @returns undefined if the text is no address
 */
export function listenAddressOf(text: string): ListenAddress | undefined {
  const [, ipv6, host, digits] = ADDRESS.exec(text) ?? [];
  const port = Number(digits);
  return port <= 65_535 ? { host: ipv6 ?? host ?? '127.0.0.1', port } : undefined;
}

/** The text that {@link listenAddressOf} parses. */
export function listenAddressText({ host, port }: ListenAddress): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/**
 * The URL of a listener.
 *
 * @param ownHost a host of this machine for a listener on all addresses, by default its loopback
 *   address
 */
export function listenerUrl({ host, port }: ListenAddress, ownHost?: string): string {
  switch (host) {
    case '0.0.0.0':
      return `http://${ownHost ?? '127.0.0.1'}:${port}`;
    case '::':
      return `http://${ownHost ?? '[::1]'}:${port}`;
    default:
      return `http://${listenAddressText({ host, port })}`;
  }
}

/** Whether only this machine can reach an address. */
export function isLoopback({ host }: ListenAddress): boolean {
  return LOOPBACK.test(host);
}
