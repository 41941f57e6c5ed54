/** It is `b64token` in RFC 6750 section 2.1. */
export const BEARER_TOKEN = /^[0-9A-Za-z\-._~+/]+=*$/;

const ZERO = String.raw`\0?`;
/** Some programs encode it in the address of a request. */
const UNDERSCORE = '(?:_|%(?:25)*5[Ff])';
/** Also in UTF-16, where a zero byte follows each character. */
const TOKEN = new RegExp(`${[...'plant', UNDERSCORE].join(ZERO)}(?:${ZERO}[0-9A-Za-z]){8,}`, 'g');
/** The base64url form of JSON, as in a JWT. Its parts are not told apart: a body may be cut. */
const JWT = new RegExp(`${[...'eyJ'].join(ZERO)}(?:${ZERO}[\\w.-]){16,}`, 'g');

/** A client may send one of our tokens, or an access token, in the wrong place. */
export function withoutTokens(text: string): string {
  return text.replace(TOKEN, 'plant_…').replace(JWT, 'eyJ…');
}
