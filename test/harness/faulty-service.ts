import { createServer, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { type LoopbackServer, listen } from './loopback-server.ts';

/** A request that arrived, with functions that respond to it. */
export interface Post {
  body: string;
  number: number;
  request: IncomingMessage;
  respond(status: number, body?: string, headers?: Record<string, string>): void;
  /** Responds like a plant store that has created the plant. */
  store(): void;
}

/**
 * Starts a server that responds as the script of a test says, for example with errors.
 *
 * @param testFields makes header fields of the response to the test that import sends first
 */
export async function startFaulty(
  script: (post: Post) => void,
  port = 0,
  testFields = (): Record<string, string> => ({}),
): Promise<LoopbackServer & { count: () => number }> {
  let count = 0;
  const server = createServer(async (request, response) => {
    const body = await text(request).catch(() => undefined);
    if (body === undefined) return;
    const respond: Post['respond'] = (status, responseBody = '{}', headers = {}) =>
      response.writeHead(status, headers).end(responseBody);
    // A plant store rejects this header, too, which import tests first.
    if (request.headers['if-plant-revision'] === 'test')
      return respond(400, errorBody(40000, 'invalid If-Plant-Revision'), testFields());
    const [, id = ''] = /"id":([0-9]+),/.exec(body) ?? [];
    const stored = { 'Plant-Outcome': 'created', 'Plant-Revision': '1', 'Plant-Id': id };
    const store = (): void => respond(200, body.replace(`"id":${id},`, ''), stored);
    script({ body, number: ++count, request, respond, store });
  });
  return Object.assign(await listen(server, port), { count: () => count });
}

export function errorBody(error: number, message: string): string {
  return JSON.stringify({ error, message });
}
