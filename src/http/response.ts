import type { Socket } from 'node:net';
import { ERROR_NAMES, ERRORS, type ErrorName, errorBody } from '../contract/errors.ts';
import { helpLink } from '../contract/help-link.ts';
import { RETRY_AFTER_SECONDS } from '../contract/limits.ts';
import type { Result } from '../contract/result.ts';
import { KEEP_ALIVE_MS } from './limits.ts';
import { STATUS_CODES } from './node-http.ts';

/** An HTTP answer as a value. Names and values of the headers follow each other in turn. */
export interface HttpResponse<Body extends string | Uint8Array = string> {
  result: Result;
  status: number;
  headers: readonly string[];
  /** Text goes out in UTF-8. */
  body: Body;
}

/** What is known of a request when its answer is written. */
export interface ReceivedRequest {
  /** When it had arrived whole, or its header section where no body was read; ms, on the monotonic clock. */
  arrivedAt: number;
  /** Of the body that was read. */
  bodyBytes: number;
}

/**
 * Told of each answer as it is written, on the fast path and by Node's HTTP server.
 *
 * @param request undefined where what arrived could not be read as one
 */
export type ResponseObserver = (
  response: Omit<HttpResponse, 'body'>,
  request: ReceivedRequest | undefined,
  socket: Socket,
) => void;

/** Names and values of every answer, on both listeners: its type is what it says, and no cache keeps it. */
export const COMMON_FIELDS = ['X-Content-Type-Options', 'nosniff', 'Cache-Control', 'no-store'];

/** RFC 6750 section 3: without a credential the challenge names no error. */
const CHALLENGE = 'Bearer realm="plant-store"';
const CHALLENGES: Partial<Record<ErrorName, string>> = {
  noCredential: CHALLENGE,
  tokenRejected: `${CHALLENGE}, error="invalid_token", error_description="${ERRORS.tokenRejected.message}"`,
};

export function contentResponse<Body extends string | Uint8Array>(
  contentType: string,
  body: Body,
  headers: readonly string[] = [],
  status = 200,
  result: Result = 'other',
): HttpResponse<Body> {
  const length = ['Content-Length', String(Buffer.byteLength(body))];
  const fields = ['Content-Type', contentType, ...COMMON_FIELDS, ...length, ...headers];
  return { result, status, headers: fields, body };
}

export function jsonResponse(
  status: number,
  body: string,
  headers: readonly string[] = [],
  result: Result = 'other',
): HttpResponse {
  return contentResponse('application/json', body, headers, status, result);
}

/**
 * An error as the catalogue has it, with the headers its status asks for: `WWW-Authenticate` on 401 (RFC 9110
 * section 15.5.2) and `Retry-After` on 503 (section 15.6.4).
 *
 * @param message said instead of the catalogue's own
 */
export function errorResponse(
  name: ErrorName,
  message?: string,
  headers: readonly string[] = [],
): HttpResponse {
  if (message !== undefined || headers.length > 0) return makeErrorResponse(name, message, headers);
  // The same each time; under overload most answers are.
  PLAIN_ERRORS[name] ??= makeErrorResponse(name, undefined, []);
  return PLAIN_ERRORS[name];
}

const PLAIN_ERRORS: Partial<Record<ErrorName, HttpResponse>> = {};

function makeErrorResponse(
  name: ErrorName,
  message: string | undefined,
  headers: readonly string[],
): HttpResponse {
  const { status } = ERRORS[name];
  const challenge = CHALLENGES[name];
  const own = challenge === undefined ? [] : ['WWW-Authenticate', challenge];
  if (status === 503) own.push('Retry-After', String(RETRY_AFTER_SECONDS));
  return jsonResponse(status, JSON.stringify(errorBody(name, message)), [...own, ...headers], name);
}

/** What Node's HTTP parser found, by its codes and those of llhttp. */
const PARSER_ERRORS: Record<string, ErrorName> = {
  HPE_HEADER_OVERFLOW: 'headersTooLarge',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 'headersTooLarge',
  ERR_HTTP_REQUEST_TIMEOUT: 'tooSlow',
};

/** @param error that Node's `clientError` event tells; one that is not known is a request that is not HTTP */
export function parserErrorResponse({ code }: NodeJS.ErrnoException): HttpResponse {
  return errorResponse(PARSER_ERRORS[code ?? ''] ?? 'badHttp');
}

/** By result: where the documentation page says more of an error. */
const HELP_FIELDS: Partial<Record<Result, readonly string[]>> = Object.fromEntries(
  ERROR_NAMES.map(name => [name, ['Link', helpLink(name)]]),
);
const CLOSING = ['Connection', 'close'];
const KEEPING = ['Connection', 'keep-alive', 'Keep-Alive', `timeout=${KEEP_ALIVE_MS / 1000}`];

// As text, since the fast path writes them with every answer.
const CLOSING_TEXT = fieldsText(CLOSING);
const KEEPING_TEXT = fieldsText(KEEPING);

/**
 * The header fields of an answer that a Node response writes, but Date; names and values in turn.
 *
 * @param isLast and `hasDocs`: as for {@link responseText}
 */
export function fieldsOf(
  { result, headers }: Omit<HttpResponse, 'body'>,
  isLast: boolean,
  hasDocs: boolean,
): string[] {
  const help = hasDocs ? HELP_FIELDS[result] : undefined;
  return [...headers, ...(help ?? []), ...(isLast ? CLOSING : KEEPING)];
}

/**
 * An answer as it goes over the wire, where no Node response writes it.
 *
 * @param isLast whether the connection is closed behind it
 * @param hasDocs whether there is a documentation page, to which an error points
 */
export function responseText(
  { result, status, headers, body }: HttpResponse,
  isLast: boolean,
  hasDocs: boolean,
): string {
  const connection = isLast ? CLOSING_TEXT : KEEPING_TEXT;
  // Only errors have a help link.
  const helpFields = hasDocs ? HELP_FIELDS[result] : undefined;
  const help = helpFields === undefined ? '' : fieldsText(helpFields);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${fieldsText(headers)}${help}Date: ${dateNow()}\r\n${connection}\r\n${body}`;
}

function fieldsText(headers: readonly string[]): string {
  let text = '';
  for (let index = 0; index < headers.length; index += 2)
    text += `${headers[index]}: ${headers[index + 1]}\r\n`;
  return text;
}

let dateSecond = 0;
let date = '';

/** As RFC 9110 section 5.6.7 writes it; made once a second, since it costs more than all the rest of an answer. */
function dateNow(): string {
  const second = Math.floor(Date.now() / 1000);
  if (second !== dateSecond) {
    dateSecond = second;
    date = new Date(second * 1000).toUTCString();
  }
  return date;
}
