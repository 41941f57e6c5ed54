import { BEARER_TOKEN } from '../contract/bearer-token.ts';

/** RFC 6750 section 2.1: "Bearer" 1*SP b64token. RFC 9110 section 11.1: case-insensitive scheme. */
const SCHEME = /^bearer +/i;

/**
 * Finds the bearer token of a request.
 *
 * @param authorization the values of all Authorization fields. Two are rejected: a proxy may have
 *   checked the other one.
 * @returns undefined unless there is exactly one field, with a token of the scheme Bearer
 */
export function bearerToken(authorization: readonly string[]): string | undefined {
  const [credential = ''] = authorization;
  if (authorization.length !== 1 || !SCHEME.test(credential)) return undefined;
  const token = credential.replace(SCHEME, '');
  return BEARER_TOKEN.test(token) ? token : undefined;
}
