/** Escapes control, invisible and noncharacters as JSON does. JSON text keeps its meaning. */
export function visible(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Noncharacter_Code_Point}]/gu, character =>
    Array.from(
      { length: character.length },
      (_, unit) => `\\u${character.charCodeAt(unit).toString(16).padStart(4, '0')}`,
    ).join(''),
  );
}

/** Removes the token, since a server may repeat it, and other people may read the output. */
export function withoutToken(text: string, token: string): string {
  return text.replaceAll(token, '<ACCESS_TOKEN>');
}
