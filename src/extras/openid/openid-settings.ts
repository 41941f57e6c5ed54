import type { ClaimRule } from './claim-rule.ts';

/** The OpenID provider whose access tokens are accepted. */
export interface OpenidSettings {
  issuer: string;
  /** A value of the claim `aud`; undefined: a token has no `aud`. */
  audience: string | undefined;
  scope: string | undefined;
  /** Rules that a token must all fulfil. */
  claims: readonly ClaimRule[];
  /** URL or file of the keys; undefined: the metadata of the issuer names the URL. */
  jwks: string | undefined;
  /**
   * The header parameter `typ`; undefined: a token has none. RFC 9068 requires `at+jwt`; some
   * providers send `JWT`, others nothing.
   */
  type: string | undefined;
}

/** Whether a URL protects its content: https, or http on this machine. */
export function isProtected(text: unknown): boolean {
  const url = URL.parse(String(text));
  const isLocal = /^(?:localhost|127\.[0-9.]+|\[::1\])$/.test(url?.hostname ?? '');
  return url?.protocol === 'https:' || (url?.protocol === 'http:' && isLocal);
}
