import { createServer, request as httpRequest } from 'node:http';
import { listen } from '../harness/loopback-server.ts';

/** A server in front of a real service that answers 503 first, cuts the second connection, and then lets requests pass. */
export interface DroppingProxy extends AsyncDisposable {
  /** Below its path `/cut` every connection is cut, and `/moved` is somewhere else. */
  url: string;
}

/** A page may read only what the answer lets it read; where it may not, no answer came for it. */
const READABLE = { 'Access-Control-Allow-Origin': '*' };

/** @param serviceUrl base address of the service behind the gateway */
export async function startDroppingProxy(serviceUrl: string): Promise<DroppingProxy> {
  let count = 0;
  const server = createServer((request, response) => {
    const { url = '', method = '', headers } = request;
    const isPreflight = method === 'OPTIONS';
    if (!isPreflight) count++;
    if (url.startsWith('/moved') && !isPreflight)
      response.writeHead(307, { ...READABLE, Location: '/plants' }).end();
    else if (!isPreflight && (url.startsWith('/cut') || count === 2)) request.socket.destroy();
    else if (count === 1 && !isPreflight) {
      response.writeHead(503, READABLE).end('{"error":50301,"message":"busy"}');
    } else {
      const path = url.replace(/^\/(?:cut|moved)/, '');
      const behind = httpRequest(serviceUrl, { method, path, headers }, received => {
        response.writeHead(received.statusCode!, received.headers);
        received.pipe(response);
      });
      request.pipe(behind);
    }
  });
  return await listen(server);
}
