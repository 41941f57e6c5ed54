import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { until } from '../../harness/until.ts';

/** A host that accepts connections and sends nothing, as a machine that hangs. */
export class SilentHost implements Disposable {
  readonly #sockets: Socket[] = [];
  readonly #server = createServer(socket => this.#sockets.push(socket.on('error', () => {}).resume()));

  static async listen(): Promise<SilentHost> {
    const host = new SilentHost();
    await once(host.#server.listen(0, '127.0.0.1'), 'listening');
    return host;
  }

  /** With its port, as in an address of PostgreSQL. */
  get name(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get timesAsked(): number {
    return this.#sockets.length;
  }

  /** Settles when it has been asked and nobody waits for it any more. */
  async isLeft(): Promise<void> {
    await until('the silent host is left', () => {
      return this.timesAsked > 0 && this.#sockets.every(({ closed }) => closed);
    });
  }

  [Symbol.dispose](): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }
}
