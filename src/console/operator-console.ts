import type { IncomingMessage, ServerResponse } from 'node:http';
import type { HttpResponse } from '../http/response.ts';
import type { OpsPage } from '../ops/ops-server.ts';
import { StoreRejected } from '../store/plant-store.ts';
import { ApiHandlers, type ConsoleParts } from './api-handlers.ts';
import {
  failure,
  type Handler,
  InvalidCall,
  isOwnOrigin,
  json,
  noContent,
  readJsonBody,
  secretOf,
  sessionCookie,
} from './calls.ts';
import { pageFile } from './page-files.ts';
import { Sessions } from './sessions.ts';

/**
 * The page for operators, below `/console/` of the operations listener. That listener checks the
 * Host field.
 *
 * A one-time code starts a session. Half of its secret is in a cookie, the other half in a header.
 * All paths of `api/` need a session, except `api/session`, which starts and ends it. A change also
 * needs the Origin of this listener (RFC 6454), so that no other page can make a browser send it.
 */
export class OperatorConsole implements OpsPage {
  readonly #parts: ConsoleParts;
  readonly #sessions: Sessions;
  readonly #handlers: Record<string, Handler>;

  constructor(parts: ConsoleParts) {
    this.#parts = parts;
    this.#sessions = new Sessions(hashes => parts.engine.takeConsoleCodes(hashes, Date.now()));
    this.#handlers = {
      ...new ApiHandlers(parts).handlers,
      'POST api/session': async ({ body, request }) => {
        const secret = await this.#sessions.signIn(typeof body.code === 'string' ? body.code : '');
        if (secret === undefined)
          return failure(
            403,
            'this link was used, has expired or is of another store; run npx plant-store console for a new one',
          );
        parts.log.info('an operator signed in to the console');
        const [cookie = '', header] = secret.split(' ');
        return json({ secret: header }, 200, sessionCookie(request, cookie));
      },
      'DELETE api/session': ({ request }) => {
        this.#sessions.signOut(secretOf(request));
        return noContent(sessionCookie(request, '', '; Max-Age=0'));
      },
    };
  }

  async respond(
    path: string,
    query: string,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<HttpResponse<string | Uint8Array> | undefined> {
    const method = request.method === 'HEAD' ? 'GET' : request.method;
    if (!path.startsWith('api/')) {
      const file = method === 'GET' ? pageFile(path) : undefined;
      return file ?? failure(404, 'there is nothing at this path; the console is at /console/');
    }
    if (method !== 'GET' && !isOwnOrigin(request))
      return failure(403, 'only the page of the console may send this');
    if (path !== 'api/session' && !this.#sessions.isActive(secretOf(request)))
      return failure(401, 'sign in first: run npx plant-store console for a new link');
    const handler = this.#handlers[`${method} ${path}`];
    if (handler === undefined) return failure(404, 'there is nothing at this path');
    try {
      const body = method === 'GET' ? {} : await readJsonBody(request);
      return await handler({ query: new URLSearchParams(query), body, request, response });
    } catch (error) {
      if (error instanceof InvalidCall) return failure(422, error.message);
      // The message of a rejection tells what to do.
      if (error instanceof StoreRejected) return failure(409, error.message);
      // The client closed the connection of a download.
      if ((error as NodeJS.ErrnoException).code === 'ERR_STREAM_PREMATURE_CLOSE') return undefined;
      this.#parts.onError(error);
      return failure(503, 'the store does not respond; the log of the service has the cause');
    }
  }
}
