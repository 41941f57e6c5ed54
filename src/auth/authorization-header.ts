import { BEARER_TOKEN } from '../contract/bearer-token.ts';

/** RFC 6750 section 2.1: credentials = "Bearer" 1*SP b64token; RFC 9110 section 11.1: the scheme in any case. */
const SCHEME = /^bearer +/i;

/**
 * Finds the bearer token of a request.
 *
 * @param authorization the value of every Authorization field; with two of them, a proxy in front may have checked
 *   the other one
 * @returns the token; undefined when there is no field, more than one, or none of the scheme Bearer
 */
export function bearerToken(authorization: readonly string[]): string | undefined {
  const [credential = ''] = authorization;
  if (authorization.length !== 1 || !SCHEME.test(credential)) return undefined;
  const token = credential.replace(SCHEME, '');
  return BEARER_TOKEN.test(token) ? token : undefined;
}
