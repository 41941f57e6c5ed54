import { ERRORS } from '../../core/contract/errors.ts';
import type { ResponseObserver } from '../../core/extension-points.ts';
import type { ReceivedRequest } from '../../core/request.ts';
import { type HttpResponse, isErrorName, type RequestResult } from '../../core/response.ts';
import { withoutTokens } from './masked-tokens.ts';
import type { TraceIdOf } from './request-traces.ts';

/** Longer texts of clients are cut. All paths of the service are shorter. */
const CLIENT_TEXT_LENGTH_MAX = 200;
/** Letters, digits and `_` in percent-encoding, which mean the same (RFC 3986 section 2.3). */
const ENCODED = /%(?:3\d|[46][1-9A-F]|[57][\dA]|5F)/gi;
/** Control and invisible characters: a terminal that shows the log could obey them. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** The log fields of a request and its response. A field that does not apply is absent. */
interface LoggedRequest {
  method?: string;
  path?: string;
  status: number;
  result: RequestResult;
  /** The number of the error. */
  error?: number;
  /** The id of the plant. */
  id?: string;
  durationMs?: number;
  bodyBytes: number;
  remoteAddress?: string;
}

/**
 * Makes the log fields of a request. They contain no token, and only the id of a plant.
 *
 * @param request undefined if the received bytes were no request
 * @param durationMs since the whole request arrived, or its headers if no body was read
 */
export function loggedRequest(
  { status, result, plantId }: HttpResponse,
  request: ReceivedRequest | undefined,
  durationMs: number,
  remoteAddress: string | undefined,
): LoggedRequest {
  return {
    ...(request && { method: withoutTokens(request.headers.method), path: clientText(request.headers.path) }),
    status,
    result,
    ...(isErrorName(result) && { error: ERRORS[result].number }),
    ...(plantId !== undefined && { id: String(plantId) }),
    // Digits below a microsecond have no meaning.
    ...(request && { durationMs: Math.round(durationMs * 1000) / 1000 }),
    bodyBytes: request?.bodyBytes ?? 0,
    ...(remoteAddress !== undefined && { remoteAddress }),
  };
}

/**
 * Makes a text of a client safe for logs and spans: without tokens and invisible characters, and
 * cut.
 *
 * @param text may contain an encoded token, and parts that cannot be decoded
 */
export function clientText(text: string): string {
  const decoded = withoutTokens(text.replace(ENCODED, decodeURIComponent));
  return decoded.replace(INVISIBLE, encodeURIComponent).slice(0, CLIENT_TEXT_LENGTH_MAX);
}

/** Writes a log line for each request, after its response. */
export function requestLog(log: (request: object) => void, traceIdOf: TraceIdOf): ResponseObserver {
  return {
    responded(response, request, durationMs, addressOf) {
      const traceId = request && traceIdOf(request);
      const logged = loggedRequest(response, request, durationMs, addressOf(request));
      log({ ...logged, ...(traceId !== undefined && { trace_id: traceId }) });
    },
  };
}
