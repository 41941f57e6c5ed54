import { once } from 'node:events';
import type { AddressInfo, Server, Socket } from 'node:net';

/** A server of a test on this machine, on a free port unless one is named; `await using` cuts its connections and closes it. */
export interface LoopbackServer extends AsyncDisposable {
  /** Without a slash at the end. */
  url: string;
  port: number;
}

/** Settles when the server takes connections, of whatever protocol. */
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
