import { HEADER_MAX_BYTES, ID_MAX, ID_MIN } from './limits.ts';

/** The same request may succeed later after an error of the catalogue with one of these statuses. */
const RETRY_STATUSES: readonly number[] = [408, 429, 500, 503];

/** @param message the text of the body, unless the response lists the faults of its request */
function entry<Status extends number, Num extends number>(
  status: Status,
  number: Num,
  message: string,
  mayRetry = true,
) {
  return { number, status, retry: mayRetry && RETRY_STATUSES.includes(status), message };
}

/**
 * The error catalogue: the number, HTTP status and message of each error, and whether the same
 * request may succeed later. A number is the status times 100 plus a counter. It never changes its
 * meaning. The message of `tokenRejected` is also in a header, so it contains no quotation mark.
 */
export const ERRORS = {
  badHttp: entry(
    400,
    40000,
    'the request is incomplete or not valid HTTP/1.1; check Host, Content-Length and Transfer-Encoding; the connection closes',
  ),
  notJson: entry(400, 40001, 'the body is empty or not valid JSON in UTF-8; use a JSON library'),
  notNewPlant: entry(
    400,
    40002,
    'the body is not a NewPlant; send an integer id, a string name and an optional string tag',
  ),
  idTaken: entry(
    400,
    40003,
    'this id is already stored with different content, which this service does not replace; use another id',
  ),
  noCredential: entry(401, 40101, 'send your token in exactly one header: Authorization: Bearer TOKEN'),
  tokenRejected: entry(
    401,
    40102,
    'the token is unknown, mistyped, expired or revoked; copy it again or ask the operator for a new one',
  ),
  noSuchPath: entry(404, 40401, 'this path does not exist; to create a plant, send POST /plants'),
  methodNotAllowed: entry(405, 40501, 'this path does not accept this method; use one from the Allow header'),
  tooSlow: entry(408, 40801, 'the complete request did not arrive in time; send it again'),
  plantChanged: entry(
    412,
    41201,
    'this plant has another latest revision than If-Plant-Revision says, so nothing was stored; to replace it, send the number in Plant-Revision',
  ),
  /** The limit is a setting, so the message has no number. */
  bodyTooLarge: entry(413, 41301, 'the body exceeds the size limit of this service; shorten name or tag'),
  notJsonMediaType: entry(
    415,
    41501,
    'send exactly one header Content-Type: application/json, with no charset or with charset=utf-8',
  ),
  contentEncoding: entry(415, 41502, 'send the body uncompressed and without a Content-Encoding header'),
  tooManyRequests: entry(
    429,
    42901,
    'this token exceeded its rate limit; wait for the number of seconds in Retry-After, then send again',
  ),
  headersTooLarge: entry(
    431,
    43101,
    `the request line and headers exceed ${HEADER_MAX_BYTES / 1024} KiB; shorten them`,
  ),
  internal: entry(500, 50001, 'unexpected internal error; the log of the service contains its cause'),
  busy: entry(503, 50301, 'too many plants are waiting for the store; send this plant again shortly'),
  /** Also for a token that cannot be checked now. Such a response has a message of its own. */
  storeUnavailable: entry(
    503,
    50302,
    'the store did not confirm this plant; it may or may not be stored, and sending it again is safe',
  ),
  shuttingDown: entry(503, 50303, 'the service is shutting down; send this plant again shortly'),
  damaged: entry(
    503,
    50304,
    'the stored plant with this id is damaged, so nothing was stored; tell the operator of the service',
    false,
  ),
};

export type ErrorName = keyof typeof ERRORS;

export const ERROR_NAMES = Object.keys(ERRORS) as readonly ErrorName[];

/** The Error of the interface: the body of every response except 200. */
export interface ErrorBody {
  error: number;
  message: string;
}

/** What an id must be, in messages of the service and the command line and in the description. */
export const ID_RULE = `an integer from ${ID_MIN} to ${ID_MAX}`;

/** @param message replaces the catalogue's message, to list the faults of one request */
export function errorBody(name: ErrorName, message: string = ERRORS[name].message): ErrorBody {
  return { error: ERRORS[name].number, message };
}
