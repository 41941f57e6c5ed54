import type { ListenAddress } from '../../server/listen.ts';

/**
 * The address of `/docs` on a listener.
 *
 * @returns a function of a host name of this machine, which a listener on all addresses needs
 */
export function docsUrlOf({ host, port }: ListenAddress): (ownHost: string) => string {
  const isWildcard = ['0.0.0.0', '::'].includes(host);
  const shown = host.includes(':') ? `[${host}]` : host;
  return ownHost => `http://${isWildcard ? ownHost : shown}:${port}/docs`;
}
