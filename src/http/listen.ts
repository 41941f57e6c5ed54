import { once } from 'node:events';
import type { AddressInfo, Server } from 'node:net';

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

/** @throws {ListenFailed} */
export async function listen(server: Server, address: ListenAddress): Promise<AddressInfo> {
  try {
    server.listen(address);
    await once(server, 'listening');
    return server.address() as AddressInfo;
  } catch (cause) {
    throw new ListenFailed(address, cause as NodeJS.ErrnoException);
  }
}
