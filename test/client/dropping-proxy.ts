import { createServer, request as httpRequest } from 'node:http';
import { listen } from '../harness/loopback-server.ts';

/** A proxy that responds 503 once, then closes one connection, and then forwards all requests. */
export interface DroppingProxy extends AsyncDisposable {
  /** Below the path `/cut` it closes every connection. Below `/moved` it redirects. */
  url: string;
}

/** Without this header a page cannot read the response, and treats it as a network error. */
const READABLE = { 'Access-Control-Allow-Origin': '*' };

/** @param serviceUrl base address of the service behind the proxy */
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
