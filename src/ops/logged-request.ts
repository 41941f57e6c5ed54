import { withoutTokens } from '../contract/bearer-token.ts';
import { ERRORS } from '../contract/errors.ts';
import { pathOf } from '../http/node-server.ts';
import { type HttpResponse, isErrorName, type ReceivedRequest } from '../http/response.ts';

/** A longer path, which no route has, is cut. */
const PATH_LENGTH_MAX = 200;

/**
 * The log fields of a request and its response: nothing of a token, and only the id of a plant.
 * `durationMs` begins when the whole request has arrived, or its headers if no body was read.
 */
export function loggedRequest(
  { status, result, headers }: Omit<HttpResponse, 'body'>,
  request: ReceivedRequest | undefined,
  remoteAddress: string | undefined,
): object {
  const idIndex = headers.indexOf('Plant-Id');
  const { method = 'POST', url = '/plants' } = request?.request ?? {};
  return {
    ...(request && {
      method: withoutTokens(method),
      path: withoutTokens(pathOf(url)).slice(0, PATH_LENGTH_MAX),
    }),
    status,
    result,
    ...(isErrorName(result) && { error: ERRORS[result].number }),
    ...(idIndex !== -1 && { id: headers[idIndex + 1]! }),
    // More digits than those of microseconds have no meaning.
    ...(request && { durationMs: Math.round((performance.now() - request.arrivedAt) * 1000) / 1000 }),
    bodyBytes: request?.bodyBytes ?? 0,
    ...(remoteAddress !== undefined && { remoteAddress }),
  };
}
