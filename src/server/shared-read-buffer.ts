import { Socket } from 'node:net';

/*
 * The only use of undocumented parts of Node (`kBuffer` and `kBufferCb` in `lib/net.js`, and
 * `useUserBuffer` of its handles, which the option `onread` uses for sockets that connect). Without
 * them the service works as well, but takes more CPU time: see docs/performance.md.
 */

/** All sockets read into it. Its bytes are taken before the next read. */
const BUFFER = Buffer.allocUnsafeSlow(64 * 1024);

const [BUFFER_FIELD, CALLBACK_FIELD] = ['kBuffer', 'kBufferCb'].map(name =>
  Object.getOwnPropertySymbols(new Socket()).find(({ description }) => description === name),
);

/** An accepted socket with its private fields. */
interface OpenSocket {
  _handle?: { useUserBuffer?: (buffer: Buffer) => void } | null;
  [field: symbol]: unknown;
}

/**
 * Passes on what a socket reads. Otherwise each read would allocate a buffer and pass through a
 * stream, as with a `data` listener.
 *
 * @param onRead gets bytes that are valid until it returns
 * @returns false if this Node lacks the necessary parts
 */
export function readIntoSharedBuffer(
  socket: Socket,
  onRead: (buffer: Buffer, length: number) => void,
): boolean {
  const open = socket as unknown as OpenSocket;
  const handle = open._handle;
  if (!BUFFER_FIELD || !CALLBACK_FIELD || typeof handle?.useUserBuffer !== 'function') return false;
  open[BUFFER_FIELD] = BUFFER;
  open[CALLBACK_FIELD] = (length: number) => onRead(BUFFER, length);
  handle.useUserBuffer(BUFFER);
  return true;
}
