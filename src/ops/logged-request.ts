import { ERRORS } from '../contract/errors.ts';
import { isErrorName } from '../contract/result.ts';
import type { HttpResponse, ReceivedRequest } from '../http/response.ts';

/**
 * A request and its answer as the log has them: nothing of a token, and of a plant the id alone.
 *
 * `durationMs` runs from the arrival of the whole request, or of its head where no body was read; what was no request has
 * none.
 */
export function loggedRequest(
  { status, result, headers }: Omit<HttpResponse, 'body'>,
  request: ReceivedRequest | undefined,
  remoteAddress: string | undefined,
): object {
  const idPlace = headers.indexOf('Plant-Id');
  return {
    status,
    result,
    ...(isErrorName(result) && { error: ERRORS[result].number }),
    ...(idPlace !== -1 && { id: headers[idPlace + 1]! }),
    // To the microsecond: more digits say nothing.
    ...(request && { durationMs: Math.round((performance.now() - request.arrivedAt) * 1000) / 1000 }),
    bodyBytes: request?.bodyBytes ?? 0,
    ...(remoteAddress !== undefined && { remoteAddress }),
  };
}
