import { ERRORS } from '../contract/errors.ts';
import { type HttpResponse, isErrorName, type ReceivedRequest } from '../http/response.ts';

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
  return {
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
