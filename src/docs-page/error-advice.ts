import type { ErrorName } from '../contract/errors.ts';

/** What the documentation page says of an error besides its message. */
export interface ErrorAdvice {
  /** What has happened. What becomes of the plant behind 500 and 503 is said of the status. */
  meaning: string;
  /** What whoever sent the request does next. */
  advice: string;
}

/** Of every error of the catalogue; what stands between backticks is code. */
export const ERROR_ADVICE: Record<ErrorName, ErrorAdvice> = {
  badHttp: {
    meaning:
      'What arrived cannot be read as a request: a missing or repeated Host, two lengths, broken chunks, or bytes ' +
      'that are no HTTP at all. Nothing behind it on the connection is taken.',
    advice:
      'Send it with an HTTP library instead of building it by hand. Where one was used, look at the proxy in between.',
  },
  notJson: {
    meaning: 'The body is not JSON, or not UTF-8, or it begins with a byte order mark.',
    advice: 'Write the body with a JSON library, and send it as UTF-8 without a byte order mark.',
  },
  notNewPlant: {
    meaning:
      'The body is JSON, but lacks something that a NewPlant has, or has it in another form. The message names every ' +
      'fault at once.',
    advice:
      'Mend each fault that the message names. An id that is refused though it looks right was often rounded, or ' +
      'written as text, before it was sent: send it as a JSON number with all its digits.',
  },
  idTaken: {
    meaning:
      'This service runs with `--repeated-id reject`, and has a plant with this id and another name or tag. That one is ' +
      'unchanged.',
    advice:
      'Choose another id. If the new content is right, its operator has to let the service keep revisions.',
  },
  noCredential: {
    meaning:
      'The request has no `Authorization` header with the scheme Bearer, or more than one `Authorization` header.',
    advice:
      'Send the header `Authorization: Bearer` and the token behind it, once. Where you do, a gateway in between takes ' +
      'it away or adds its own.',
  },
  credentialRefused: {
    meaning: 'The token is none of this store, or is in force no longer.',
    advice:
      'Copy the token again, whole and without quotes. If it expired or was revoked, the operator makes another with: ' +
      '`plant-store token create LABEL`.',
  },
  noSuchPath: {
    meaning: 'Paths are exact: `/Plants` and `/plants/` are not `/plants`.',
    advice: 'Look at the base address. Behind a gateway it may need a path of its own in front of `/plants`.',
  },
  methodNotAllowed: {
    meaning: 'The path is right, the method is not. Plants cannot be read, changed or deleted over HTTP.',
    advice: 'Use a method that the `Allow` header of the answer names: POST for plants.',
  },
  tooSlow: {
    meaning: 'Headers and body have to arrive within a few seconds. Nothing of the plant is stored.',
    advice:
      'Send it again, body and headers in one go. If it happens often, look for what holds your requests back.',
  },
  bodyTooLarge: {
    meaning: 'The body is larger than this service takes: 1 MiB, unless its operator chose another limit.',
    advice: 'Shorten name or tag, or ask the operator for a larger `--body-limit`.',
  },
  notJsonMediaType: {
    meaning: 'The `Content-Type` is missing, given twice, another type, or names another charset than utf-8.',
    advice:
      'Send the header `Content-Type: application/json`. Many tools send a form type unless told otherwise.',
  },
  contentEncoding: {
    meaning:
      'The body has a `Content-Encoding`, such as gzip. Bodies are small, and are taken only as they are.',
    advice: 'Switch the compression of request bodies off in your client or in the gateway.',
  },
  tooManyRequests: {
    meaning:
      'The operator limits how many requests each token may send. Nothing of this request is stored. The ' +
      '`RateLimit` headers say what is left.',
    advice:
      'Wait for as many seconds as `Retry-After` says, and send it again. Spread your requests over time.',
  },
  headersTooLarge: {
    meaning: 'Request line and headers are larger than 16 KiB together.',
    advice: 'Leave out what the service does not need, such as cookies.',
  },
  internal: {
    meaning: 'A fault in the service.',
    advice: 'Send it again. If it stays, tell the operator the time of your request.',
  },
  busy: {
    meaning: 'More plants arrive than the disk takes, or more long bodies than there is memory for.',
    advice:
      'Wait for as many seconds as `Retry-After` says, and send it again, with a longer wait each time.',
  },
  storeUnavailable: {
    meaning:
      'The store did not say in time whether the plant is on disk. A token that could not be checked is answered the ' +
      'same.',
    advice: 'Send it again until it is answered 200.',
  },
  shuttingDown: {
    meaning: 'The service is being stopped or restarted.',
    advice: 'Open a new connection and send it again; `Retry-After` says when.',
  },
};
