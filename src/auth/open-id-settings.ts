/** The OpenID provider whose access tokens are accepted. */
export interface OpenIdSettings {
  /** The exact claim `iss`. */
  issuer: string;
  /** One of the claim `aud`. */
  audience: string;
  /** Must be in the claim `scope`, `scp` or `roles`; undefined: none is required. */
  scope?: string | undefined;
  /** URL or file of the keys; undefined: the metadata of the issuer names the URL. */
  jwks?: string | undefined;
  /** The header parameter `typ`. RFC 9068 requires `at+jwt`; some providers send `JWT`. */
  type: string;
}

/** Whether a URL protects its content: https, or http on this machine. */
export function isProtected(text: string): boolean {
  const url = URL.parse(text);
  const isLocal = /^(?:localhost|127\.[0-9.]+|\[::1\])$/.test(url?.hostname ?? '');
  return url?.protocol === 'https:' || (url?.protocol === 'http:' && isLocal);
}
