/** The OpenID provider whose access tokens are accepted. */
export interface OpenIdSettings {
  issuer: string;
  audience: string;
  scope: string | undefined;
  /** URL or file of the keys; undefined: the metadata of the issuer names the URL. */
  jwks: string | undefined;
  /** The header parameter `typ`. RFC 9068 requires `at+jwt`; some providers send `JWT`. */
  type: string;
}

/** Whether a URL protects its content: https, or http on this machine. */
export function isProtected(text: unknown): boolean {
  const url = URL.parse(String(text));
  const isLocal = /^(?:localhost|127\.[0-9.]+|\[::1\])$/.test(url?.hostname ?? '');
  return url?.protocol === 'https:' || (url?.protocol === 'http:' && isLocal);
}
