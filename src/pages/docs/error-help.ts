import type { ErrorName } from '../../core/contract/errors.ts';

/**
 * The next step after each error, which the page shows below the message. Text between backticks is
 * code. Another part of the page explains that the plant may be stored after 500 and 503.
 */
export const ERROR_HELP: Record<ErrorName, string> = {
  badHttp:
    'Use an HTTP library. If you already do, check the proxy between the client and the service. ' +
    'If the message names `If-Plant-Revision`, correct that header.',
  notJson:
    'Common causes are incomplete bodies, form data, single quotes, trailing commas and a byte order mark.',
  notNewPlant:
    'Fix each problem that the message lists. Send the id as a JSON number with all its digits, not as a string. ' +
    'Many programs round large ids before they send them.',
  idTaken:
    'The stored plant is unchanged. To allow revisions, the operator has to remove `--repeated-id reject`.',
  noCredential:
    'Write one space between `Bearer` and the token. A gateway may remove the `Authorization` header or add a second one.',
  tokenRejected:
    'Copy the whole token, without quotes. The operator can create a new token with `plant-store token create LABEL`.',
  noSuchPath:
    'The path is `/plants`, not `/Plants` or `/plants/`. If you use a gateway, check the base address.',
  methodNotAllowed: 'To create a plant, use POST. Plants cannot be read, changed or deleted over HTTP.',
  tooSlow: 'Send headers and body without a pause. If the error occurs often, check the network and proxies.',
  plantChanged:
    'The response has the number of the latest revision in `Plant-Revision`. Find out who changed the plant, and decide which content is right. ' +
    'Content that is already stored is never rejected for this reason, so a retry is safe.',
  bodyTooLarge: 'The operator can raise the limit with `--body-limit`.',
  notJsonMediaType: 'Many tools send the `Content-Type` of HTML forms by default. Set this header yourself.',
  contentEncoding: 'Disable the compression of request bodies in your client or gateway.',
  tooManyRequests: 'Spread your requests over time. The `RateLimit` header shows how many you can send now.',
  headersTooLarge: 'Remove headers that the service does not need, such as cookies.',
  internal: 'Send the plant again. If the error persists, tell the operator the time of your request.',
  busy: 'If you get 503 again, wait longer each time. Either the disk is busy, or the memory for long bodies is full.',
  storeUnavailable:
    'Send the plant again until the response is 200. The service also sends this error if it cannot check a token.',
  shuttingDown: 'Send the plant over a new connection, after the number of seconds in `Retry-After`.',
  damaged: 'Until the operator repairs the store, only plants with other ids can be stored.',
};
