import type { Socket } from 'node:net';
import { type HttpResponse, responseText } from './response.ts';
import type { ServerContext } from './server-context.ts';

/** After the last response, received bytes are discarded for at most this long. */
const DISCARD_MS = 2_000;

/**
 * Ends our side of a connection after all responses. Received bytes are discarded until the client
 * closes its side, for a limited time. An immediate close would reset the connection while the
 * client sends, and it might lose its last responses (RFC 9112 section 9.6).
 */
export function lingeringClose(socket: Socket): void {
  if (!socket.writable) return;
  socket.removeAllListeners('data').resume();
  socket.end(() => {
    const timer = setTimeout(() => socket.destroy(), DISCARD_MS).unref();
    socket.on('close', () => clearTimeout(timer));
  });
}

/** Sends an error that belongs to no whole request, and closes the connection. */
export function closeWithError(socket: Socket, error: HttpResponse, context: ServerContext): void {
  if (!socket.writable) return;
  context.onResponse(error, undefined, socket);
  const headers = [...error.headers, ...(context.mark?.(error) ?? [])];
  socket.write(responseText({ ...error, headers }, true, context.documentation !== undefined));
  lingeringClose(socket);
}
