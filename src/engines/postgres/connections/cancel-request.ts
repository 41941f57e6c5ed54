import { connect } from 'node:net';
import { CONNECT_TIMEOUT_MS, type HostAddress } from '../postgres-url.ts';

/** https://www.postgresql.org/docs/current/protocol-message-formats.html, CancelRequest */
const CANCEL_REQUEST = 80_877_102;

/** What a server sends to each connection, for requests that cancel its statements. */
export interface CancelKey {
  processID: number;
  secretKey: number;
}

/**
 * Asks a server to cancel the statement of a connection. The protocol requires another connection
 * for this. The server does not respond to the request.
 *
 * @param remoteAddress the address of the connection, since the host name may resolve to another
 */
export function sendCancelRequest(
  { host, port }: HostAddress,
  remoteAddress: string | undefined,
  { processID, secretKey }: CancelKey,
): void {
  const socket = host.startsWith('/')
    ? connect(`${host}/.s.PGSQL.${port}`)
    : connect(port, remoteAddress ?? host);
  socket.on('error', () => {}).setTimeout(CONNECT_TIMEOUT_MS, () => socket.destroy());
  const request = Buffer.alloc(16);
  for (const [index, word] of [request.length, CANCEL_REQUEST, processID, secretKey].entries()) {
    request.writeInt32BE(word, index * 4);
  }
  socket.unref().end(request);
}
