import { ERRORS } from '../contract/errors.ts';
import { isErrorName, type Result } from '../contract/result.ts';
import type { Answer, AnsweredRequest } from './answer.ts';

/** A request and its answer as the log has them: nothing of a token, and of a plant the id alone. */
export interface LoggedRequest {
  status: number;
  /** An outcome, the name of the error, or `other`. */
  result: Result;
  /** Number of the error. */
  error?: number;
  /** Of the plant that was kept, in its exact digits. */
  id?: string;
  /** From the arrival of the whole request, or of its head where no body was read; absent for what was no request. */
  durationMs?: number;
  /** Of the body that was read. */
  bodyBytes: number;
  remoteAddress?: string;
}

export function loggedRequest(
  { status, result, headers }: Omit<Answer, 'body'>,
  request: AnsweredRequest | undefined,
  remoteAddress: string | undefined,
): LoggedRequest {
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
