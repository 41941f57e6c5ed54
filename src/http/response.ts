import { ERROR_NAMES, ERRORS, type ErrorName, errorBody, helpLink } from '../contract/errors.ts';
import { RETRY_AFTER_SECONDS } from '../contract/limits.ts';
import { OUTCOMES, type Outcome } from '../contract/plant.ts';
import type { TracedRequest } from '../contract/trace-context.ts';
import type { HeaderFields } from './header-fields.ts';
import { KEEP_ALIVE_MS } from './limits.ts';
import { STATUS_CODES } from './node-http.ts';

/** The result of a request: the outcome of a plant, an entry of the error catalogue, or neither. */
export type Result = Outcome | ErrorName | 'other';

export function isOutcome(result: Result): result is Outcome {
  return (OUTCOMES as readonly Result[]).includes(result);
}

export function isErrorName(result: Result): result is ErrorName {
  return result !== 'other' && !isOutcome(result);
}

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
  readonly contentType: string | undefined;
  /** The field X-Forwarded-For, which anybody can forge. */
  readonly forwardedFor: string | undefined;
  /** The fields Host and User-Agent, for spans; the first one of several. */
  readonly host: string | undefined;
  readonly userAgent: string | undefined;
  /** It is undefined for `POST /plants`. */
  readonly request?: { method?: string | undefined; url?: string | undefined };
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

/** Errors of Node's HTTP parser, by the codes of Node and of llhttp. */
const PARSER_ERRORS: Record<string, ErrorName> = {
  HPE_HEADER_OVERFLOW: 'headersTooLarge',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 'headersTooLarge',
  ERR_HTTP_REQUEST_TIMEOUT: 'tooSlow',
};

/** @param error of Node's `clientError` event; with an unknown code, the request is not HTTP */
export function parserError({ code }: NodeJS.ErrnoException): HttpResponse {
  return errorResponse(PARSER_ERRORS[code ?? ''] ?? 'badHttp');
}

/** Links from an error response to its help on the documentation page. */
const HELP_FIELDS: Partial<Record<Result, HeaderFields>> = Object.fromEntries(
  ERROR_NAMES.map(name => [name, ['Link', helpLink(name)]]),
);
const CLOSE = [...COMMON_FIELDS, 'Connection', 'close'];
const KEEP_ALIVE_TIMEOUT = ['Keep-Alive', `timeout=${KEEP_ALIVE_MS / 1000}`];
const KEEP_ALIVE = [...COMMON_FIELDS, 'Connection', 'keep-alive', ...KEEP_ALIVE_TIMEOUT];

/** All header fields except Date. @param hasDocs whether errors link to a documentation page */
export function fieldsOf(response: Omit<HttpResponse, 'body'>, isLast: boolean, hasDocs: boolean): string[] {
  const help = (hasDocs && HELP_FIELDS[response.result]) || [];
  return [...response.headers, ...help, ...(isLast ? CLOSE : KEEP_ALIVE)];
}

/** A response as sent on the wire, for responses that Node's HTTP server does not write. */
export function responseText(response: HttpResponse, isLast: boolean, hasDocs: boolean): string {
  const { result, status, headers, body } = response;
  const help = (hasDocs && HELP_FIELDS[result]) || [];
  const { close, keepAlive } = restNow();
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${fieldsText(headers)}${fieldsText(help)}${isLast ? close : keepAlive}${body}`;
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
