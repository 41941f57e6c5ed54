/** Escapes control, invisible and noncharacters as JSON does. JSON text keeps its meaning. */
export function visible(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Noncharacter_Code_Point}]/gu, character =>
    Array.from(
      { length: character.length },
      (_, unit) => `\\u${character.charCodeAt(unit).toString(16).padStart(4, '0')}`,
    ).join(''),
  );
}

/** Messages show this many characters of a text that may be long, and cut the rest. */
export const SHOWN_LENGTH_MAX = 200;

/** Puts a text of a user in quotes, for a message. */
export function quoted(text: string): string {
  const ellipsis = text.length > SHOWN_LENGTH_MAX ? '…' : '';
  return `${visible(JSON.stringify(text.slice(0, SHOWN_LENGTH_MAX)))}${ellipsis}`;
}

/** Removes the token, since a server may repeat it, and other people may read the output. */
export function withoutToken(text: string, token: string): string {
  return text.replaceAll(token, '<ACCESS_TOKEN>');
}
