import { createServer, type Socket } from 'node:net';
import { listen } from '../../harness/loopback-server.ts';

/** Status line and first headers of the response for a stored plant. */
export const STORED = 'HTTP/1.1 200 OK\r\nPlant-Outcome: created\r\nPlant-Revision: 1\r\n';

/** One connection with its requests that have no response yet. */
export interface Arrived {
  /** Number of the connection, from 1. */
  connection: number;
  socket: Socket;
  /** Requests with their bodies. The script removes a request when it responds. */
  requests: string[];
}

/** Responds to `count` requests like a plant store, in one write. */
export function store({ socket, requests }: Arrived, count: number, field = ''): void {
  const responses = requests.splice(0, count).map(request => `${STORED}${field}${storedRest(request)}`);
  socket.write(responses.join(''));
}

/** The part of that response after {@link STORED}. */
export function storedRest(request: string): string {
  const plant = request.slice(request.indexOf('{')).replace(/"id":[0-9]+,/, '');
  return `Plant-Id: ${idOf(request)}\r\nContent-Length: ${Buffer.byteLength(plant)}\r\n\r\n${plant}`;
}

export function idOf(request: string): string {
  return /"id":([0-9]+)/.exec(request)![1]!;
}

/** Starts a server that runs the script for each chunk with complete requests. */
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
