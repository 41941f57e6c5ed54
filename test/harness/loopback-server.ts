import { once } from 'node:events';
import type { AddressInfo, Server, Socket } from 'node:net';

/** A server on this machine. `await using` cuts its connections and closes it. */
export interface LoopbackServer extends AsyncDisposable {
  /** Without a slash at the end. */
  url: string;
  port: number;
}

/** Starts a server of any protocol. Settles when it accepts connections. */
export async function listen(server: Server, wantedPort = 0): Promise<LoopbackServer> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  await once(server.listen(wantedPort, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    [Symbol.asyncDispose]: async () => {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  };
}
