import { ERRORS, type ErrorName, errorBody } from './contract/errors.ts';
import { RETRY_AFTER_SECONDS } from './contract/limits.ts';
import { OUTCOMES, type Outcome } from './contract/plant.ts';
import type { HeaderFields } from './header-fields.ts';

/** The result of a request: the outcome of a plant, an entry of the error catalogue, or neither. */
export type RequestResult = Outcome | ErrorName | 'other';

/** Whether a plant is stored. */
export function isOutcome(result: RequestResult): result is Outcome {
  return (OUTCOMES as readonly RequestResult[]).includes(result);
}

/** Whether the response has an error of the catalogue. */
export function isErrorName(result: RequestResult): result is ErrorName {
  return result !== 'other' && !isOutcome(result);
}

/** The statuses of all responses to clients, with their texts (RFC 9110 section 15). */
export const STATUS_TEXTS = {
  200: 'OK',
  204: 'No Content',
  303: 'See Other',
  400: 'Bad Request',
  401: 'Unauthorized',
  404: 'Not Found',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  412: 'Precondition Failed',
  413: 'Content Too Large',
  415: 'Unsupported Media Type',
  429: 'Too Many Requests',
  431: 'Request Header Fields Too Large',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
};

export type Status = keyof typeof STATUS_TEXTS;

/** How a response is delivered to its client. */
export type Delivery =
  /**
   * `isLast`: the connection ends after it, unless a further request was read.
   * `onTaken` is called when the kernel has accepted the whole response for the client.
   * `isClientThere`: the client has not ended its side.
   */
  | { kind: 'whole'; isLast: boolean; onTaken: (isClientThere: boolean) => void }
  /** The connection is closed after this part of the response. */
  | { kind: 'cut'; partOf: (headers: string, body: string) => string };

/** An HTTP response. Text is sent in UTF-8. */
export interface HttpResponse<Body extends string | Uint8Array = string> {
  result: RequestResult;
  status: Status;
  /** Its own header fields. The server adds those of all responses, such as Date. */
  fields: HeaderFields;
  body: Body;
  /** The id in its field Plant-Id, for observers. */
  plantId?: bigint;
  /** The number of the confirmed revision, in its field Plant-Revision, for observers. */
  revision?: number;
  /** The message of its error, for observers. */
  message?: string;
  /** Only a wrapper of the operation sets it. Undefined: as a whole, like any other response. */
  delivery?: Delivery;
}

/** RFC 6750 section 3: without a credential, the challenge contains no error. */
const CHALLENGE = 'Bearer realm="plant-store"';
const CHALLENGES: Partial<Record<ErrorName, string>> = {
  noCredential: CHALLENGE,
  tokenRejected: `${CHALLENGE}, error="invalid_token", error_description="${ERRORS.tokenRejected.message}"`,
};

export function contentResponse<Body extends string | Uint8Array>(
  contentType: string,
  body: Body,
  fields: HeaderFields = [],
  status: Status = 200,
  result: RequestResult = 'other',
): HttpResponse<Body> {
  const length = ['Content-Length', String(Buffer.byteLength(body))];
  return {
    result,
    status,
    fields: ['Content-Type', contentType, ...length, ...fields],
    body,
  };
}

export function jsonResponse(
  status: Status,
  body: string,
  fields?: HeaderFields,
  result?: RequestResult,
): HttpResponse {
  return contentResponse('application/json', body, fields, status, result);
}

/** An error of the catalogue, with the fields that RFC 9110 defines for 401 and 503. */
export function errorResponse(
  name: ErrorName,
  message: string = ERRORS[name].message,
  fields: HeaderFields = [],
): HttpResponse {
  const { status, retry } = ERRORS[name];
  const challenge = CHALLENGES[name];
  const required = challenge === undefined ? [] : ['WWW-Authenticate', challenge];
  if (status === 503 && retry) required.push('Retry-After', String(RETRY_AFTER_SECONDS));
  const body = JSON.stringify(errorBody(name, message));
  return { ...jsonResponse(status, body, [...required, ...fields], name), message };
}
