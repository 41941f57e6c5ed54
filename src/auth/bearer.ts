/** RFC 6750 section 2.1: credentials = "Bearer" 1*SP b64token; RFC 9110 section 11.1: the scheme in any case. */
const BEARER = /^bearer +([0-9A-Za-z\-._~+/]+=*)$/i;

/**
 * Finds the bearer token of a request.
 *
 * @param authorization the value of every Authorization field; with two of them, a proxy in front may have checked
 *   the other one
 * @returns the token; undefined when there is no field, more than one, or none of the scheme Bearer
 */
export function bearerToken(authorization: readonly string[]): string | undefined {
  return authorization.length === 1 ? BEARER.exec(authorization[0]!)?.[1] : undefined;
}
