/** Longest label of a token, in UTF-16 code units. */
export const TOKEN_LABEL_LENGTH_MAX = 100;
/** Longest label of a subject of an OpenID provider: its issuer and `sub`. */
export const SUBJECT_LABEL_LENGTH_MAX = 512;

/**
 * Blanks at an end, invisible and replacement characters, and those that reverse the text. The
 * property is that of UAX #44: a display may leave out such a character.
 */
const INVISIBLE = /^\s|[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\ufffd]|\s$/u;

/** Whether a text can be the label of a new token. */
export function isTokenLabel(text: string, lengthMax = TOKEN_LABEL_LENGTH_MAX): boolean {
  return text !== '' && text.length <= lengthMax && !INVISIBLE.test(text) && text.isWellFormed();
}
