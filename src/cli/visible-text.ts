/**
 * Writes characters that a terminal obeys, or shows not at all, and those that no text may hold, as JSON escapes: JSON stays
 * the same JSON.
 */
export function visible(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Noncharacter_Code_Point}]/gu, character =>
    Array.from(
      { length: character.length },
      (_, unit) => `\\u${character.charCodeAt(unit).toString(16).padStart(4, '0')}`,
    ).join(''),
  );
}

/** A server may repeat what it was sent, and what is printed or written is read by others than the holder of the token. */
export function withoutToken(text: string, token: string): string {
  return text.replaceAll(token, '<ACCESS_TOKEN>');
}
