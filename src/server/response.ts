import { ERROR_NAMES, ERRORS, type ErrorName, errorBody, helpLink } from '../core/contract/errors.ts';
import { RETRY_AFTER_SECONDS } from '../core/contract/limits.ts';
import { OUTCOMES, type Outcome } from '../core/contract/plant.ts';
import type { TracedRequest } from '../core/trace-context.ts';
import type { HeaderFields } from '../core/header-fields.ts';
import { KEEP_ALIVE_MS } from './limits.ts';
import type { RequestHead } from './request-head.ts';

/** The result of a request: the outcome of a plant, an entry of the error catalogue, or neither. */
export type Result = Outcome | ErrorName | 'other';

export function isOutcome(result: Result): result is Outcome {
  return (OUTCOMES as readonly Result[]).includes(result);
}

export function isErrorName(result: Result): result is ErrorName {
  return result !== 'other' && !isOutcome(result);
}

/** The texts of the statuses that the service sends (RFC 9110 section 15). */
export const STATUS_TEXTS: Partial<Record<number, string>> = {
  200: 'OK',
  204: 'No Content',
  400: 'Bad Request',
  401: 'Unauthorized',
  404: 'Not Found',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  413: 'Content Too Large',
  415: 'Unsupported Media Type',
  429: 'Too Many Requests',
  431: 'Request Header Fields Too Large',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
};

/** An HTTP response. Text is sent in UTF-8. */
export interface HttpResponse<Body extends string | Uint8Array = string> {
  result: Result;
  status: number;
  /** They do not include {@link COMMON_FIELDS}. */
  headers: HeaderFields;
  body: Body;
  /** Set in a sandbox: the connection ends before, within or after the response. */
  ending?: 'before' | 'within' | 'after';
}

/** What is known of a request when its response is written. */
export interface ReceivedRequest extends TracedRequest {
  /** When the whole request arrived, or its headers if no body was read; ms, monotonic clock. */
  arrivedAt: number;
  /** Length of the body that was read. */
  bodyBytes: number;
  /** The body, if it was read. A string has a character for each byte. */
  body?: Uint8Array | string | undefined;
  /** The id of its token, if the store has it. A rejected token may be expired or revoked. */
  tokenId?: number | undefined;
  readonly head: RequestHead;
}

/** Header fields of every response, on both listeners: no content sniffing, no caching. */
export const COMMON_FIELDS = ['X-Content-Type-Options', 'nosniff', 'Cache-Control', 'no-store'];

/** RFC 6750 section 3: without a credential, the challenge contains no error. */
const CHALLENGE = 'Bearer realm="plant-store"';
const CHALLENGES: Partial<Record<ErrorName, string>> = {
  noCredential: CHALLENGE,
  tokenRejected: `${CHALLENGE}, error="invalid_token", error_description="${ERRORS.tokenRejected.message}"`,
};

export function contentResponse<Body extends string | Uint8Array>(
  contentType: string,
  body: Body,
  headers: HeaderFields = [],
  status = 200,
  result: Result = 'other',
): HttpResponse<Body> {
  const length = ['Content-Length', String(Buffer.byteLength(body))];
  return { result, status, headers: ['Content-Type', contentType, ...length, ...headers], body };
}

export function jsonResponse(
  status: number,
  body: string,
  headers?: HeaderFields,
  result?: Result,
): HttpResponse {
  return contentResponse('application/json', body, headers, status, result);
}

/** An error of the catalogue, with the fields that RFC 9110 requires for 401 and 503. */
export function errorResponse(name: ErrorName, message?: string, headers: HeaderFields = []): HttpResponse {
  const { status, retry } = ERRORS[name];
  const challenge = CHALLENGES[name];
  const required = challenge === undefined ? [] : ['WWW-Authenticate', challenge];
  if (status === 503 && retry) required.push('Retry-After', String(RETRY_AFTER_SECONDS));
  const body = JSON.stringify(errorBody(name, message));
  return jsonResponse(status, body, [...required, ...headers], name);
}

/** Links from an error response to its help on the documentation page. */
const HELP_FIELDS: Partial<Record<Result, HeaderFields>> = Object.fromEntries(
  ERROR_NAMES.map(name => [name, ['Link', helpLink(name)]]),
);
const CLOSE = [...COMMON_FIELDS, 'Connection', 'close'];
const KEEP_ALIVE_TIMEOUT = ['Keep-Alive', `timeout=${KEEP_ALIVE_MS / 1000}`];
const KEEP_ALIVE = [...COMMON_FIELDS, 'Connection', 'keep-alive', ...KEEP_ALIVE_TIMEOUT];

/**
 * The status line and the header section of a response, as sent on the wire.
 *
 * @param isLast whether the connection ends after it
 * @param hasDocs whether errors link to a documentation page
 */
export function responseHead(
  { result, status, headers }: Omit<HttpResponse, 'body'>,
  isLast: boolean,
  hasDocs: boolean,
  more: HeaderFields = [],
): string {
  const help = (hasDocs && HELP_FIELDS[result]) || [];
  const { close, keepAlive } = restNow();
  return `HTTP/1.1 ${status} ${STATUS_TEXTS[status]}\r\n${fieldsText(headers)}${fieldsText(help)}${fieldsText(more)}${isLast ? close : keepAlive}`;
}

function fieldsText(headers: HeaderFields): string {
  let text = '';
  for (let index = 0; index < headers.length; index += 2)
    text += `${headers[index]}: ${headers[index + 1]}\r\n`;
  return text;
}

let rest: { close: string; keepAlive: string } | undefined;

/**
 * The fields that all responses of a second share, with Date (RFC 9110 section 6.6.1), and the empty
 * line. They are made at most once per second.
 */
function restNow(): { close: string; keepAlive: string } {
  if (rest === undefined) {
    const now = new Date();
    const textOf = (fields: string[]) => `${fieldsText(['Date', now.toUTCString(), ...fields])}\r\n`;
    rest = { close: textOf(CLOSE), keepAlive: textOf(KEEP_ALIVE) };
    setTimeout(() => (rest = undefined), 1000 - now.getMilliseconds()).unref();
  }
  return rest;
}
