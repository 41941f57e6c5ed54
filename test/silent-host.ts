import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';

/** A host that takes connections and says nothing. */
export class SilentHost implements Disposable {
  readonly #server: Server;
  readonly #sockets: Socket[] = [];

  private constructor(server: Server) {
    this.#server = server;
    server.on('connection', socket => this.#sockets.push(socket));
  }

  static async listen(): Promise<SilentHost> {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new SilentHost(server);
  }

  /** With its port, as in an address of PostgreSQL. */
  get name(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get timesAsked(): number {
    return this.#sockets.length;
  }

  [Symbol.dispose](): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }
}
