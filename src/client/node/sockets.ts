/** What is used of the sockets of `node:net` and `node:tls`. */
export interface Socket {
  readonly destroyed: boolean;
  setEncoding(encoding: 'latin1'): void;
  setNoDelay(noDelay: boolean): void;
  on(event: 'data', listener: (piece: string) => void): void;
  on(event: 'end' | 'close', listener: () => void): void;
  on(event: 'error', listener: (error: { code?: string }) => void): void;
  write(text: string): void;
  destroy(): void;
  /** Whether an open socket keeps the process from ending. */
  ref(): void;
  unref(): void;
}

/** Opens a connection to the service. */
export type Connect = () => Socket;

/** Both modules connect alike. */
interface SocketModule {
  connect(options: { host: string; port: number; servername?: string; ALPNProtocols?: string[] }): Socket;
}

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
  const { navigator, process } = globalThis as {
    navigator?: { userAgent?: string };
    process?: { getBuiltinModule?: (name: string) => SocketModule | undefined };
  };
  if (navigator !== undefined && navigator.userAgent?.startsWith('Node.js/') !== true) return undefined;
  const hasTls = protocol === 'https:';
  const sockets = process?.getBuiltinModule?.(hasTls ? 'node:tls' : 'node:net');
  if (sockets === undefined) return undefined;
  const target = {
    host: hostname.replace(/^\[|\]$/g, ''),
    port: port === '' ? (hasTls ? 443 : 80) : Number(port),
    // A server that has several names chooses its certificate by this one (RFC 6066 section 3, which leaves addresses out).
    ...(hasTls && !/^(?:\[.*\]|[0-9.]+)$/.test(hostname) ? { servername: hostname } : {}),
    // Where HTTP/1.1 is not asked for, a server may choose HTTP/2 (RFC 7301).
    ...(hasTls ? { ALPNProtocols: ['http/1.1'] } : {}),
  };
  return () => {
    const socket = sockets.connect(target);
    socket.setNoDelay(true);
    return socket;
  };
}
