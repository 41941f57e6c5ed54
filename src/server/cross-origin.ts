import { fieldValues, type HeaderFields, HTTP_TOKEN } from '../core/header-fields.ts';
import type { HttpResponse } from '../core/response.ts';

/** A browser may cache the response to a preflight for this long; Chromium's maximum. */
const PREFLIGHT_MAX_AGE_SECONDS = 7_200;

/** Origins as a browser writes them, such as `https://plants.example`, or `*` for all. */
export type AllowedOrigins = readonly string[] | '*';

/** Header fields that a script may read, besides those that CORS always allows. */
const EXPOSED =
  'Plant-Id, Plant-Revision, Plant-Outcome, Retry-After, RateLimit, RateLimit-Policy, WWW-Authenticate, Link';

/**
 * Lets pages of other origins send plants (https://fetch.spec.whatwg.org/#http-cors-protocol). Only
 * the response to a request with an Origin gets these fields. No response may be cached, so all
 * others need no `Vary`.
 */
export function crossOriginFields(allowed: AllowedOrigins | undefined, fields: HeaderFields): string[] {
  const origins = fieldValues(fields, 'origin');
  if (allowed === undefined || origins.length === 0) return [];
  const vary = allowed === '*' ? [] : ['Vary', 'Origin'];
  if (!isAllowed(allowed, origins)) return vary;
  const origin = allowed === '*' ? '*' : origins[0]!;
  return ['Access-Control-Allow-Origin', origin, 'Access-Control-Expose-Headers', EXPOSED, ...vary];
}

/** Names of header fields, separated by commas. */
const FIELD_NAMES = new RegExp(String.raw`^${HTTP_TOKEN}(?:[ \t]*,[ \t]*${HTTP_TOKEN})*$`);

/**
 * The response to an OPTIONS request that is a preflight of an allowed origin. It allows every
 * header field that the page wants to send, such as `X-Request-Id`: the service ignores most fields,
 * and `*` does not include Authorization. RFC 9110 section 8.6: a 204 has no Content-Length.
 */
export function preflightResponse(
  allowed: AllowedOrigins | undefined,
  fields: HeaderFields,
): HttpResponse | undefined {
  if (fieldValues(fields, 'access-control-request-method').length === 0) return undefined;
  if (!isAllowed(allowed, fieldValues(fields, 'origin'))) return undefined;
  const wanted = fieldValues(fields, 'access-control-request-headers').join(', ');
  const responseFields = [
    'Access-Control-Allow-Methods',
    'POST',
    'Access-Control-Allow-Headers',
    FIELD_NAMES.test(wanted) ? wanted : 'authorization, content-type, if-plant-revision',
    'Access-Control-Max-Age',
    String(PREFLIGHT_MAX_AGE_SECONDS),
  ];
  return { result: 'other', status: 204, fields: responseFields, body: '' };
}

/** A browser sends one Origin. Several are not allowed. */
function isAllowed(allowed: AllowedOrigins | undefined, origins: readonly string[]): boolean {
  return origins.length === 1 && (allowed === '*' || allowed?.includes(origins[0]!) === true);
}
