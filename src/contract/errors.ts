import { ID_MAX, ID_MIN } from './limits.ts';

/**
 * The error catalogue: every number the service answers with, its HTTP status, what it says, and whether the
 * same request may succeed later. A number is the status times 100 plus a counter and never changes its meaning.
 */
export const ERRORS = {
  badHttp: {
    number: 40000,
    status: 400,
    retry: false,
    message: 'the request is not valid HTTP/1.1; the connection is closed',
  },
  notJson: { number: 40001, status: 400, retry: false, message: 'the body is not JSON in UTF-8' },
  notNewPlant: { number: 40002, status: 400, retry: false, message: 'the body is not a NewPlant' },
  idTaken: {
    number: 40003,
    status: 400,
    retry: false,
    message: 'a plant with this id and other content is stored already, and this service keeps the first',
  },
  noCredential: {
    number: 40101,
    status: 401,
    retry: false,
    message: 'send one Authorization header with the scheme Bearer and a token',
  },
  credentialRefused: {
    number: 40102,
    status: 401,
    retry: false,
    message: 'the token is unknown, mistyped, expired or revoked',
  },
  noSuchPath: {
    number: 40401,
    status: 404,
    retry: false,
    message: 'there is nothing at this path; plants are created with POST /plants',
  },
  methodNotAllowed: {
    number: 40501,
    status: 405,
    retry: false,
    message: 'this path does not take that method; the Allow header names what it takes',
  },
  tooSlow: {
    number: 40801,
    status: 408,
    retry: true,
    message: 'the request did not arrive whole in time; send it again',
  },
  bodyTooLarge: {
    number: 41301,
    status: 413,
    retry: false,
    message: 'the body is larger than this service takes',
  },
  notJsonMediaType: {
    number: 41501,
    status: 415,
    retry: false,
    message: 'send the body as Content-Type: application/json, with no charset or charset=utf-8',
  },
  contentEncoding: {
    number: 41502,
    status: 415,
    retry: false,
    message: 'send the body as it is, without Content-Encoding',
  },
  tooManyRequests: {
    number: 42901,
    status: 429,
    retry: true,
    message:
      'this token has sent more requests than the service grants it; send again after Retry-After seconds',
  },
  headersTooLarge: {
    number: 43101,
    status: 431,
    retry: false,
    message: 'the request line and headers are larger than 16 KiB; send smaller ones',
  },
  internal: {
    number: 50001,
    status: 500,
    retry: true,
    message: 'the service failed in a way it does not know; its operator finds the cause in the log',
  },
  busy: {
    number: 50301,
    status: 503,
    retry: true,
    message: 'more plants are waiting than the service can take; send this one again shortly',
  },
  storeUnavailable: {
    number: 50302,
    status: 503,
    retry: true,
    message: 'the store did not confirm this plant, so it may or may not be kept; sending it again is safe',
  },
  shuttingDown: {
    number: 50303,
    status: 503,
    retry: true,
    message: 'the service is shutting down; send this plant again shortly',
  },
} as const satisfies Record<string, CatalogueEntry>;

interface CatalogueEntry {
  /** `error` of the answer's body; an int32. */
  number: number;
  /** HTTP status of the answer. */
  status: number;
  /** Whether the same request may succeed later, unchanged. */
  retry: boolean;
  /** `message` of the answer's body, unless the faults of this body are named instead. */
  message: string;
}

/** The name of an entry of the catalogue. */
export type ErrorName = keyof typeof ERRORS;

/** A status of the catalogue. */
export type ErrorStatus = (typeof ERRORS)[ErrorName]['status'];

/** In the order of their numbers. */
export const ERROR_NAMES = Object.keys(ERRORS) as readonly ErrorName[];

/** The errors that are answered with a status. */
export function errorNamesOf(status: ErrorStatus): ErrorName[] {
  return ERROR_NAMES.filter(name => ERRORS[name].status === status);
}

/** What the HTTP parser found, by the codes of llhttp and Node. */
const PARSER_ERRORS: Record<string, ErrorName> = {
  HPE_HEADER_OVERFLOW: 'headersTooLarge',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 'headersTooLarge',
  ERR_HTTP_REQUEST_TIMEOUT: 'tooSlow',
};

/** @param code of the error that Node's `clientError` event tells; any other one is a request that is not HTTP */
export function parserErrorName(code: string | undefined): ErrorName {
  return PARSER_ERRORS[code ?? ''] ?? 'badHttp';
}

/** The Error of the interface: what the body of every answer but 200 holds. */
export interface ErrorBody {
  error: number;
  message: string;
}

/** The text about an id, the same in the service, the command line and the description. */
export const ID_RULE = `an integer from ${ID_MIN} to ${ID_MAX}`;

/**
 * Makes the body of an error answer.
 * @param name the catalogue's entry
 * @param message said instead of the entry's own, to name the faults of one request
 */
export function errorBody(name: ErrorName, message: string = ERRORS[name].message): ErrorBody {
  return { error: ERRORS[name].number, message };
}
