/** What is used of the sockets of `node:net`. */
export interface Socket {
  readonly destroyed: boolean;
  setEncoding(encoding: 'latin1'): void;
  on(event: 'data', listener: (piece: string) => void): void;
  on(event: 'end' | 'close', listener: () => void): void;
  on(event: 'error', listener: (error: { code?: string }) => void): void;
  write(text: string): void;
  destroy(): void;
  /** Whether an open socket keeps the process from ending. */
  ref(): void;
  unref(): void;
}

/** Connects over TCP. */
export type Connect = (options: { host: string; port: number; noDelay: true }) => Socket;

/**
 * Finds the sockets of Node without importing them, which would keep this file out of browsers.
 *
 * Other runtimes that have `node:net` too are left to their `fetch`: some forbid a connection that outlives the request
 * in which it was opened. Each names itself in `navigator.userAgent`; Node does since 21.
 *
 * @returns undefined elsewhere, and in a Node before 20.16, which does not hand out its modules
 */
export function nodeConnect(): Connect | undefined {
  const { navigator, process } = globalThis as {
    navigator?: { userAgent?: string };
    process?: { getBuiltinModule?: (name: 'node:net') => { connect: Connect } | undefined };
  };
  if (navigator !== undefined && navigator.userAgent?.startsWith('Node.js/') !== true) return undefined;
  return process?.getBuiltinModule?.('node:net')?.connect;
}
