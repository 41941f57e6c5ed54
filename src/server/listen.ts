import { once } from 'node:events';
import { type AddressInfo, Server, type Socket } from 'node:net';
import { type ListenAddress, listenAddressText } from './listen-address.ts';

/** Connections that may wait while the service starts. A further one closes the oldest. */
const WAITING_CONNECTIONS_MAX = 1_024;

export class ListenFailed extends Error {
  readonly address: ListenAddress;
  /** The system's error code, such as `EADDRINUSE`. */
  readonly code: string | undefined;

  constructor(address: ListenAddress, cause: NodeJS.ErrnoException) {
    super(`cannot listen at ${listenAddressText(address)}: ${cause.message}`, { cause });
    this.name = 'ListenFailed';
    this.address = address;
    this.code = cause.code;
  }
}

/** An address that is reserved before its server exists. Its connections wait unread until then. */
export class ReservedAddress extends Server {
  readonly #waiting: Socket[] = [];

  private constructor() {
    // The first two options are those of Node's HTTP server.
    super({ allowHalfOpen: true, noDelay: true, pauseOnConnect: true }, socket => {
      // The client of the oldest connection has most likely gone, or was a health probe.
      if (this.#waiting.push(socket) > WAITING_CONNECTIONS_MAX) this.#waiting.shift()!.destroy();
    });
  }

  /** @throws {ListenFailed} when the address is not available */
  static async reserve(address: ListenAddress): Promise<ReservedAddress> {
    try {
      const reserved = new ReservedAddress().listen(address);
      await once(reserved, 'listening');
      return reserved;
    } catch (cause) {
      throw new ListenFailed(address, cause as NodeJS.ErrnoException);
    }
  }

  /** From now on, `server` accepts the connections, and serves those that wait. */
  async handOver(server: Server): Promise<AddressInfo> {
    server.listen(this);
    await once(server, 'listening');
    for (const socket of this.#waiting.splice(0)) {
      server.emit('connection', socket);
      socket.resume();
    }
    return server.address() as AddressInfo;
  }

  /** Closes the connections that still wait. The server must have closed all others. */
  override async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#waiting) socket.destroy();
    await super[Symbol.asyncDispose]();
  }
}
