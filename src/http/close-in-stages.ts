import type { Socket } from 'node:net';
import { type Answer, answerText } from './answer.ts';
import { DISCARD_MS } from './limits.ts';
import type { Listener } from './plant-service.ts';

/**
 * Closes a connection behind all that was written to it: ends our side, then drops what the client still sends, until it
 * has closed its own side or for {@link DISCARD_MS}. Closing at once would reset a connection on which the client still
 * sends, and it might never see its last responses (RFC 9112 section 9.6).
 */
export function closeInStages(socket: Socket): void {
  if (!socket.writable) return;
  // From here on nobody parses what arrives.
  socket.removeAllListeners('data').resume();
  socket.end(() => {
    const timer = setTimeout(() => socket.destroy(), DISCARD_MS).unref();
    socket.on('close', () => clearTimeout(timer));
  });
}

/** Sends an error that belongs to no whole request, and closes the connection. */
export function closeWithError(socket: Socket, error: Answer, { answered, documentation }: Listener): void {
  if (!socket.writable) return;
  answered(error, undefined, socket);
  socket.write(answerText(error, true, documentation !== undefined));
  closeInStages(socket);
}
