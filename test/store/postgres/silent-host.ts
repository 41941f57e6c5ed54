import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { until } from '../../harness/until.ts';

/** A host that accepts connections but sends nothing, like a machine that hangs. */
export class SilentHost implements Disposable {
  readonly #sockets: Socket[] = [];
  readonly #server = createServer(socket => this.#sockets.push(socket.on('error', () => {}).resume()));

  static async listen(): Promise<SilentHost> {
    const host = new SilentHost();
    await once(host.#server.listen(0, '127.0.0.1'), 'listening');
    return host;
  }

  /** Host and port, as in a PostgreSQL URL. */
  get name(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get attempts(): number {
    return this.#sockets.length;
  }

  /** Settles when clients have connected and all connections are closed. */
  async isDisconnected(): Promise<void> {
    await until('the connections to the silent host are closed', () => {
      return this.attempts > 0 && this.#sockets.every(({ closed }) => closed);
    });
  }

  [Symbol.dispose](): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }
}
