const ZERO = String.raw`\0?`;
/** Some programs percent-encode the underscore in the target of a request. */
const UNDERSCORE = '(?:_|%(?:25)*5[Ff])';
/** One of our tokens, also in UTF-16, where a zero byte follows each character. */
const TOKEN = new RegExp(`${[...'plant', UNDERSCORE].join(ZERO)}(?:${ZERO}[0-9A-Za-z]){8,}`, 'g');
/** A JWT, which begins with JSON in base64url. A part of it matches, too: a body may be cut. */
const JWT = new RegExp(`${[...'eyJ'].join(ZERO)}(?:${ZERO}[\\w.-]){16,}`, 'g');

/** Masks our tokens and access tokens, because a client may send them in the wrong place. */
export function withoutTokens(text: string): string {
  return text.replace(TOKEN, 'plant_…').replace(JWT, 'eyJ…');
}
