import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** Shares connections among the instances of a service, in turn; one that refuses a connection is passed over. */
export class TcpProxy implements AsyncDisposable {
  readonly #server: Server;
  readonly #ports: readonly (() => number)[];
  readonly #sockets = new Set<Socket>();
  #next = 0;
  /** Connections that no instance took. */
  turnedAway = 0;

  private constructor(server: Server, ports: readonly (() => number)[]) {
    this.#server = server;
    this.#ports = ports;
    server.on('connection', client => {
      this.#hold(client);
      client.pause();
      this.#pass(client, this.#next++, this.#ports.length);
    });
  }

  /** @param ports where the instances listen, asked for again for each connection */
  static async start(ports: readonly (() => number)[]): Promise<TcpProxy> {
    const server = createServer({ allowHalfOpen: true, noDelay: true }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new TcpProxy(server, ports);
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  #pass(client: Socket, turn: number, attempts: number): void {
    if (attempts === 0) {
      this.turnedAway++;
      client.destroy();
      return;
    }
    const port = this.#ports[turn % this.#ports.length]!();
    const instance = connect({ port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
    this.#hold(instance);
    const isRefused = (): void => this.#pass(client, turn + 1, attempts - 1);
    instance.once('error', isRefused);
    instance.once('connect', () => {
      instance.off('error', isRefused);
      client.pipe(instance);
      instance.pipe(client);
      client.on('close', () => instance.destroy());
      instance.on('close', () => client.destroy());
    });
  }

  #hold(socket: Socket): void {
    this.#sockets.add(socket);
    // A close follows each error.
    socket.on('error', () => {}).on('close', () => this.#sockets.delete(socket));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await once(this.#server, 'close');
  }
}
