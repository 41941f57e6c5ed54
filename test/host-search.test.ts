import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { test } from 'node:test';
import { HostSearch } from '../src/store/postgres/host-search.ts';
import { postgresAddressOf } from '../src/store/postgres/postgres-url.ts';

/** A host that takes connections and says nothing. */
class SilentHost implements Disposable {
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

for (const count of [1, 2]) {
  test(`where none of ${count} hosts answers, a first search asks each once and waits for connect_timeout once`, async () => {
    using hosts = new DisposableStack();
    const silent: SilentHost[] = [];
    for (let number = 0; number < count; number++) silent.push(hosts.use(await SilentHost.listen()));
    const names = silent.map(({ name }) => name).join(',');
    const address = postgresAddressOf(`postgres://u:p@${names}/d?connect_timeout=1&sslmode=disable`);
    await assert.rejects(new HostSearch(address).connect());
    assert.deepEqual(
      silent.map(({ timesAsked }) => timesAsked),
      new Array(count).fill(1),
    );
  });
}
