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

/** An address in use by this process, before the server for it exists. Connections are closed. */
export class ReservedAddress implements Disposable {
  readonly #placeholder = createServer(socket => socket.destroy());
  #isTaken = false;

  /** @throws {ListenFailed} when the address is not available */
  static async reserve(address: ListenAddress): Promise<ReservedAddress> {
    const reserved = new ReservedAddress();
    try {
      reserved.#placeholder.listen(address);
      await once(reserved.#placeholder, 'listening');
      return reserved;
    } catch (cause) {
      throw new ListenFailed(address, cause as NodeJS.ErrnoException);
    }
  }

  /** Has a server accept the connections from now on. */
  async listen(server: Server): Promise<AddressInfo> {
    this.#isTaken = true;
    server.listen(this.#placeholder);
    await once(server, 'listening');
    return server.address() as AddressInfo;
  }

  [Symbol.dispose](): void {
    if (!this.#isTaken) this.#placeholder.close();
  }
}
