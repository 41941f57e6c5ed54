import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';

/** The address to listen at; port 0 selects a free port. */
export interface ListenAddress {
  host: string;
  port: number;
}

export class ListenFailed extends Error {
  readonly address: ListenAddress;
  /** The system's error code, such as `EADDRINUSE`. */
  readonly code: string | undefined;

  constructor(address: ListenAddress, cause: NodeJS.ErrnoException) {
    super(`cannot listen at ${address.host}:${address.port}: ${cause.message}`, { cause });
    this.name = 'ListenFailed';
    this.address = address;
    this.code = cause.code;
  }
}

/**
 * Uses an address before the server for it exists. Until then, connections to it are closed.
 *
 * @throws {ListenFailed} when the address is not available
 */
export async function reserveAddress(address: ListenAddress): Promise<Server> {
  try {
    const placeholder = createServer(socket => socket.destroy()).listen(address);
    await once(placeholder, 'listening');
    return placeholder;
  } catch (cause) {
    throw new ListenFailed(address, cause as NodeJS.ErrnoException);
  }
}

/** From now on, `server` accepts the connections to the address of the placeholder. */
export async function listenInstead(placeholder: Server, server: Server): Promise<AddressInfo> {
  server.listen(placeholder);
  await once(server, 'listening');
  return server.address() as AddressInfo;
}
