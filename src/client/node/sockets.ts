import type { Socket } from 'node:net';

/** Opens a connection to the service. */
export type Connect = () => Socket;

/**
 * Finds the sockets of Node without importing them, which would keep this file out of browsers.
 *
 * Other runtimes that have `node:net` too are left to their `fetch`: some forbid a connection that outlives the request
 * in which it was opened. Each names itself in `navigator.userAgent`; Node does since 21.
 *
 * @returns what connects to the host of a `http:` or `https:` address; undefined elsewhere, and in a Node before 20.16,
 *   which does not hand out its modules
 */
export function nodeConnect({ protocol, hostname, port }: URL): Connect | undefined {
  const { navigator, process } = globalThis as Partial<typeof globalThis>;
  if (navigator !== undefined && navigator.userAgent?.startsWith('Node.js/') !== true) return undefined;
  if (process?.getBuiltinModule === undefined) return undefined;
  const host = hostname.replace(/^\[|\]$/g, '');
  if (protocol === 'http:') {
    const net = process.getBuiltinModule('node:net');
    return () => net.connect({ host, port: Number(port || 80) }).setNoDelay(true);
  }
  const tls = process.getBuiltinModule('node:tls');
  // A server that has several names chooses its certificate by this one (RFC 6066 section 3, which leaves addresses out).
  const name = /^(?:\[.*\]|[0-9.]+)$/.test(hostname) ? {} : { servername: hostname };
  // Where HTTP/1.1 is not asked for, a server may choose HTTP/2 (RFC 7301).
  const target = { host, port: Number(port || 443), ...name, ALPNProtocols: ['http/1.1'] };
  return () => tls.connect(target).setNoDelay(true);
}
