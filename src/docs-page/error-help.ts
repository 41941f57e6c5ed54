import type { ErrorName } from '../contract/errors.ts';

/**
 * What the page adds to the message of each error: what whoever sent the request does next. What stands between backticks
 * is code. What becomes of the plant after 500 and 503 the page says once, for all of them.
 */
export const ERROR_ADVICE: Record<ErrorName, string> = {
  badHttp:
    'Send exactly one Host and one length, best with an HTTP library. If you do, look at the proxy in between.',
  notJson: 'Write the body with a JSON library, and send it as UTF-8 without a byte order mark.',
  notNewPlant:
    'Correct each fault that the message names. An id that is rejected though it looks right was often rounded, or ' +
    'written as text, before it was sent: send a JSON number with all its digits.',
  idTaken:
    'Choose another id; the stored plant is unchanged. If the new content is right, the operator has to let the service ' +
    'keep revisions: it runs with `--repeated-id reject`.',
  noCredential:
    'Send `Authorization: Bearer` and the token behind it, once. If you do, a gateway in between removes the header or ' +
    'adds its own.',
  tokenRejected:
    'Copy the token again, whole and without quotes. If it expired or was revoked, the operator makes another with ' +
    '`plant-store token create LABEL`.',
  noSuchPath:
    'Paths are exact: `/Plants` and `/plants/` are not `/plants`. Behind a gateway, check the base address.',
  methodNotAllowed:
    'Use a method that `Allow` names: POST for plants. They cannot be read, changed or deleted over HTTP.',
  tooSlow: 'Send headers and body in one go. If it happens often, look for what holds your requests back.',
  bodyTooLarge: 'Shorten name or tag, or ask the operator for a larger `--body-limit` than 1 MiB.',
  notJsonMediaType:
    'Send `Content-Type: application/json`, once. Many tools send a form type unless told otherwise.',
  contentEncoding: 'Switch off the compression of request bodies in your client or in the gateway.',
  tooManyRequests:
    'Wait as many seconds as `Retry-After` says. Spread your requests over time; the `RateLimit` headers say what is left.',
  headersTooLarge: 'Leave out what the service does not need, such as cookies.',
  internal: 'If it stays, tell the operator the time of your request.',
  busy: 'Wait as many seconds as `Retry-After` says, and longer each time. The disk or the memory for long bodies is busy.',
  storeUnavailable:
    'Send it again until the response is 200. A token that could not be checked gets the same error.',
  shuttingDown: 'Open a new connection as many seconds later as `Retry-After` says.',
};
