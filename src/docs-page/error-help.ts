import type { ErrorName } from '../contract/errors.ts';

/**
 * The next step for the client that gets each error; the page shows it after the message. Text between
 * backticks is code. After 500 and 503 the plant may be stored, which the page explains once for all.
 */
export const ERROR_HELP: Record<ErrorName, string> = {
  badHttp:
    'Use an HTTP library. Send exactly one `Host`, and either `Content-Length` or `Transfer-Encoding: chunked`, not ' +
    'both. If your client does this, check whether a proxy cuts off or changes the request.',
  notJson:
    'Common causes are an empty body, form data, single quotes, a trailing comma and an encoding other than UTF-8. Do ' +
    'not send a byte order mark.',
  notNewPlant:
    'Fix each problem that the message names. Send the id as a JSON number with all its digits, not as a string. Many ' +
    'programs round large ids before they send them.',
  idTaken:
    'The stored plant is unchanged. The service runs with `--repeated-id reject`. To store the new content as a ' +
    'revision, ask the operator to remove that option.',
  noCredential:
    'Write one space between `Bearer` and the token. If your client does this, a gateway removes the header or adds ' +
    'another one.',
  tokenRejected:
    'Copy the whole token, without quotes. If the token expired or was revoked, the operator creates another one with ' +
    '`plant-store token create LABEL`.',
  noSuchPath:
    'Paths are exact: `/Plants` and `/plants/` are not `/plants`. Behind a gateway, check the base address.',
  methodNotAllowed: 'For plants, only POST is allowed. Plants cannot be read, changed or deleted over HTTP.',
  tooSlow:
    'Send headers and body without a pause. If the error occurs often, check the network and the proxies between your ' +
    'client and the service.',
  bodyTooLarge: 'The operator can raise the limit with `--body-limit`.',
  notJsonMediaType: 'Many tools send the type of a form by default. Set `Content-Type` yourself.',
  contentEncoding: 'Disable the compression of request bodies in your client or gateway.',
  tooManyRequests:
    'Spread your requests over time. The `RateLimit` header contains the number of requests that you can send now.',
  headersTooLarge: 'Remove headers that the service does not need, such as cookies.',
  internal: 'Send the plant again. If the error persists, tell the operator the time of your request.',
  busy:
    'Wait for the number of seconds in `Retry-After`, and longer after each further 503. The disk or the memory for ' +
    'long bodies is busy.',
  storeUnavailable:
    'Send the plant again until the response is 200. You get the same error if the service cannot check your token.',
  shuttingDown:
    'Wait for the number of seconds in `Retry-After`. Then open a new connection and send the plant again.',
};
