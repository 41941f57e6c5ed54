import { ID_MAX, ID_MIN } from './limits.ts';

/** After a response with one of these the same request may succeed later, unchanged. */
const TRANSIENT_STATUSES: readonly number[] = [408, 429, 500, 503];

/** The message is the body's, unless the faults of the request are named instead. */
function entry<Num extends number, Status extends number>(number: Num, status: Status, message: string) {
  return { number, status, retry: TRANSIENT_STATUSES.includes(status), message } as const;
}

/**
 * The error catalogue: every number the service answers with, its HTTP status, what it says, and whether the
 * same request may succeed later. A number is the status times 100 plus a counter and never changes its meaning.
 */
export const ERRORS = {
  badHttp: entry(40000, 400, 'the request is not valid HTTP/1.1; the connection is closed'),
  notJson: entry(40001, 400, 'the body is not JSON in UTF-8'),
  notNewPlant: entry(40002, 400, 'the body is not a NewPlant'),
  idTaken: entry(
    40003,
    400,
    'a plant with this id and other content is stored already, and this service keeps the first',
  ),
  noCredential: entry(40101, 401, 'send one Authorization header with the scheme Bearer and a token'),
  tokenRejected: entry(40102, 401, 'the token is unknown, mistyped, expired or revoked'),
  noSuchPath: entry(40401, 404, 'there is nothing at this path; plants are created with POST /plants'),
  methodNotAllowed: entry(
    40501,
    405,
    'this path does not take that method; the Allow header names what it takes',
  ),
  tooSlow: entry(40801, 408, 'the request did not arrive whole in time; send it again'),
  bodyTooLarge: entry(41301, 413, 'the body is larger than this service takes'),
  notJsonMediaType: entry(
    41501,
    415,
    'send the body as Content-Type: application/json, with no charset or charset=utf-8',
  ),
  contentEncoding: entry(41502, 415, 'send the body as it is, without Content-Encoding'),
  tooManyRequests: entry(
    42901,
    429,
    'this token has sent more requests than the service grants it; send again after Retry-After seconds',
  ),
  headersTooLarge: entry(
    43101,
    431,
    'the request line and headers are larger than 16 KiB; send smaller ones',
  ),
  internal: entry(
    50001,
    500,
    'the service failed in a way it does not know; its operator finds the cause in the log',
  ),
  busy: entry(50301, 503, 'more plants are waiting than the service can take; send this one again shortly'),
  storeUnavailable: entry(
    50302,
    503,
    'the store did not confirm this plant, so it may or may not be kept; sending it again is safe',
  ),
  shuttingDown: entry(50303, 503, 'the service is shutting down; send this plant again shortly'),
} as const;

export type ErrorName = keyof typeof ERRORS;

export type ErrorStatus = (typeof ERRORS)[ErrorName]['status'];

export const ERROR_NAMES = Object.keys(ERRORS) as readonly ErrorName[];

/** The Error of the interface: what the body of every answer but 200 holds. */
export interface ErrorBody {
  error: number;
  message: string;
}

/** The text about an id, the same in the service, the command line and the description. */
export const ID_RULE = `an integer from ${ID_MIN} to ${ID_MAX}`;

/** @param message said instead of the entry's own, to name the faults of one request */
export function errorBody(name: ErrorName, message: string = ERRORS[name].message): ErrorBody {
  return { error: ERRORS[name].number, message };
}
