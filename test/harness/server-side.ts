import { subscribe } from 'node:diagnostics_channel';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { RawConnection } from './raw-connection.ts';

/** By both ports, since a client may have the same one towards two services; a service of the same process took them. */
const sockets = new Map<string, Socket>();

subscribe('net.server.socket', message => {
  const { socket } = message as { socket: Socket };
  const ports = `${socket.localPort} ${socket.remotePort}`;
  sockets.set(ports, socket);
  socket.on('close', () => sockets.get(ports) === socket && sockets.delete(ports));
});

/** The service's end of a connection, where the service runs in the process of the test and has taken it. */
export function serverSideOf({ socket }: RawConnection): Socket | undefined {
  return sockets.get(`${socket.remotePort} ${socket.localPort}`);
}

/** Those on which Node's HTTP server has seen a request. */
const leftToNode = new WeakSet<Socket>();

subscribe('http.server.request.start', message => {
  leftToNode.add((message as { request: IncomingMessage }).request.socket);
});

/** Whether Node's HTTP server has a connection, and a request on it. */
export function isLeftToNode(connection: RawConnection): boolean {
  const serverSide = serverSideOf(connection);
  return serverSide !== undefined && leftToNode.has(serverSide);
}
