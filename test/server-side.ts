import { subscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import type { RawConnection } from './raw-connection.ts';

/** By the port of the client; a service of the same process took them. */
const sockets = new Map<number, Socket>();

subscribe('net.server.socket', message => {
  const { socket } = message as { socket: Socket };
  const { remotePort } = socket;
  if (remotePort === undefined) return;
  sockets.set(remotePort, socket);
  socket.on('close', () => sockets.get(remotePort) === socket && sockets.delete(remotePort));
});

/** The service's end of a connection, where the service runs in the process of the test and has taken it. */
export function serverSideOf({ socket }: RawConnection): Socket | undefined {
  return sockets.get(socket.localPort ?? -1);
}

/** Whether Node's HTTP server has a connection; it hangs its parser on each. */
export function isLeftToNode(connection: RawConnection): boolean {
  const serverSide = serverSideOf(connection) as { parser?: object | null } | undefined;
  return serverSide?.parser != null;
}
