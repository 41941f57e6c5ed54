import type { Socket } from 'node:net';
import { DISCARD_MS } from './limits.ts';
import { type HttpResponse, responseText } from './response.ts';
import type { Listener } from './server-context.ts';

/**
 * Closes a connection behind all that was written to it: ends our side, then drops what the client still sends, until it
 * has closed its own side or for {@link DISCARD_MS}. Closing at once would reset a connection on which the client still
 * sends, and it might never see its last responses (RFC 9112 section 9.6).
 */
export function lingeringClose(socket: Socket): void {
  if (!socket.writable) return;
  // From here on nobody parses what arrives.
  socket.removeAllListeners('data').resume();
  socket.end(() => {
    const timer = setTimeout(() => socket.destroy(), DISCARD_MS).unref();
    socket.on('close', () => clearTimeout(timer));
  });
}

/** Sends an error that belongs to no whole request, and closes the connection. */
export function closeWithError(
  socket: Socket,
  error: HttpResponse,
  { onResponse, documentation }: Listener,
): void {
  if (!socket.writable) return;
  onResponse(error, undefined, socket);
  socket.write(responseText(error, true, documentation !== undefined));
  lingeringClose(socket);
}
