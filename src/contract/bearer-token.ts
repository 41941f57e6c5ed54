/** It is `b64token` in RFC 6750 section 2.1. */
export const BEARER_TOKEN = /^[0-9A-Za-z\-._~+/]+=*$/;

const ZERO = String.raw`\0?`;
/** Some programs encode it in the address of a request. */
const UNDERSCORE = '(?:_|%(?:25)*5[Ff])';
/** Also in UTF-16, where a zero byte follows each character. */
const TOKEN = new RegExp(`${[...'plant', UNDERSCORE].join(ZERO)}(?:${ZERO}[0-9A-Za-z]){8,}`, 'g');

/** A client may send one of our tokens in the wrong place. */
export function withoutTokens(text: string): string {
  return text.replace(TOKEN, 'plant_…');
}
