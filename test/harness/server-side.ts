import { subscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import type { RawConnection } from './raw-connection.ts';

/** The service's sockets by both ports, since a client can use one port for two services. */
const sockets = new Map<string, Socket>();

subscribe('net.server.socket', message => {
  const { socket } = message as { socket: Socket };
  const ports = `${socket.localPort} ${socket.remotePort}`;
  sockets.set(ports, socket);
  socket.on('close', () => sockets.get(ports) === socket && sockets.delete(ports));
});

/** The service's end of a connection. The service must run in the process of the test. */
export function serverSideOf({ socket }: RawConnection): Socket | undefined {
  return sockets.get(`${socket.remotePort} ${socket.localPort}`);
}
