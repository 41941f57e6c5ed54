import { createServer, type Socket } from 'node:net';
import { listen } from '../../harness/loopback-server.ts';

/** The beginning of an answer to a stored plant. */
export const STORED = 'HTTP/1.1 200 OK\r\nPlant-Outcome: created\r\nPlant-Revision: 1\r\n';

/** What has arrived on one connection and is not answered. */
export interface Arrived {
  /** Of the connections, counted from 1. */
  connection: number;
  socket: Socket;
  /** Requests with their bodies; the script takes out those that it answers. */
  requests: string[];
}

/** Answers `count` requests as a plant store does, in one write. */
export function store({ socket, requests }: Arrived, count: number, field = ''): void {
  const responses = requests.splice(0, count).map(request => `${STORED}${field}${storedRest(request)}`);
  socket.write(responses.join(''));
}

/** The rest of that answer. */
export function storedRest(request: string): string {
  const plant = request.slice(request.indexOf('{')).replace(/"id":[0-9]+,/, '');
  return `Plant-Id: ${idOf(request)}\r\nContent-Length: ${Buffer.byteLength(plant)}\r\n\r\n${plant}`;
}

export function idOf(request: string): string {
  return /"id":([0-9]+)/.exec(request)![1]!;
}

/** Starts a server that does with the bytes of a connection what the script says. */
export async function startScripted(
  script: (arrived: Arrived) => void,
): Promise<{ url: string; connections: () => number } & AsyncDisposable> {
  let connections = 0;
  const server = createServer(socket => {
    const arrived: Arrived = { connection: ++connections, socket, requests: [] };
    let rest = '';
    socket.on('error', () => {});
    socket.setEncoding('utf8').on('data', (chunk: unknown) => {
      const parts = (rest + chunk).split(/(?=POST \/plants HTTP\/1\.1\r\n)/);
      rest = parts.at(-1)!.endsWith('}') ? '' : parts.pop()!;
      arrived.requests.push(...parts);
      if (parts.length > 0) script(arrived);
    });
  });
  return Object.assign(await listen(server), { connections: () => connections });
}
