import type { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { StoreRejected } from '../../../core/commit/store-errors.ts';

const SCRAM_WITH_BINDING = 'SCRAM-SHA-256-PLUS';

/**
 * Requires that the server binds its authentication to the TLS connection (RFC 5802 section 6), as
 * libpq does for `channel_binding=require`. pg uses the binding if the server offers it, and checks
 * the proof. But pg also obeys a server that offers it and then asks for a cleartext password.
 *
 * @param messages emits the messages of the server; pg must not listen to it yet
 * @returns a function that throws {@link StoreRejected} if the server has given no proof
 */
export function requireChannelBinding(messages: EventEmitter, socket: Socket, isTls: boolean): () => void {
  let isProven = false;
  const reject = (): void => {
    // The socket is destroyed first, because pg would respond to the message.
    socket.destroy();
    messages.emit('error', notBound());
  };
  messages.on('authenticationSASL', ({ mechanisms }: { mechanisms: string[] }) => {
    if (!isTls || !mechanisms.includes(SCRAM_WITH_BINDING)) reject();
  });
  messages.on('authenticationCleartextPassword', reject).on('authenticationMD5Password', reject);
  messages.on('authenticationSASLFinal', () => (isProven = true));
  return () => {
    if (!isProven) throw notBound();
  };
}

function notBound(): StoreRejected {
  return new StoreRejected(
    `the server does not prove with ${SCRAM_WITH_BINDING} that it terminates TLS, as channel_binding=require demands`,
    { advice: 'check that it offers TLS, and scram-sha-256 for this user in pg_hba.conf' },
  );
}
