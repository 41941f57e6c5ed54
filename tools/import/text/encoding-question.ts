import { bytesOfText, indexOfInvalid, replaceInvalid } from './utf8-texts.ts';

const SHOWN_MAX_BYTES = 8;
/** The message shows this many readings of a text, and at most two encodings for each. */
const READINGS_MAX = 6;
const NAMES_MAX = 2;
/** Encodings by names that `--encoding` accepts. The most frequent is first. */
const ENCODINGS = [
  ...['WINDOWS-1252', 'WINDOWS-1250', 'WINDOWS-1251', 'MACINTOSH', 'KOI8-R', 'WINDOWS-1253'],
  ...['SHIFT_JIS', 'GB18030', 'BIG5', 'EUC-KR'],
];
/**
 * What text in a wrong encoding has: control, private-use or unassigned characters, or a symbol
 * within a word that is no typographic quote, dash or hybrid sign.
 */
const IMPLAUSIBLE =
  /[\p{Cc}\p{Co}\p{Cn}]|(?<=\p{L})(?![\p{ASCII}\u2010-\u201f\u2026×°®™])[^\p{L}\p{M}\p{Zs}]/u;
/** A byte that ends a field. It is no part of a character in the encodings above. */
const FIELD_BORDER = /[\t\n\r",;]/;
/** Characters of a field that are read on each side of the first invalid byte. */
const CONTEXT_LENGTH = 40;

/**
 * Shows the field around the first byte that is not UTF-8 in the encodings that make a text of it.
 * Only the user knows the right one.
 *
 * @param text an escaped text that has an invalid byte
 * @returns a text such as `the byte E9: "Café" in WINDOWS-1252, "CafÈ" in MACINTOSH`
 */
export function encodingQuestion(text: string): string {
  const field = fieldAt(text, indexOfInvalid(text));
  const bytes: string[] = [];
  replaceInvalid(field, invalid => {
    bytes.push(...Array.from(invalid, byte => byte.toString(16).toUpperCase()));
    return '';
  });
  const what = `the ${bytes.length === 1 ? 'byte' : 'bytes'} ${bytes.slice(0, SHOWN_MAX_BYTES).join(' ')}`;
  const readings = new Map<string, string[]>();
  for (const encoding of ENCODINGS) {
    const reading = readingIn(encoding, field);
    if (reading !== undefined) readings.set(reading, [...(readings.get(reading) ?? []), encoding]);
  }
  const shown = Array.from(readings)
    .slice(0, READINGS_MAX)
    .map(([reading, names]) => `${JSON.stringify(reading)} in ${names.slice(0, NAMES_MAX).join(' or ')}`);
  return shown.length === 0 ? what : `${what}: ${shown.join(', ')}`;
}

function fieldAt(text: string, position: number): string {
  const before = text.slice(Math.max(0, position - CONTEXT_LENGTH), position);
  const after = text.slice(position, position + CONTEXT_LENGTH);
  return before.split(FIELD_BORDER).at(-1)! + after.split(FIELD_BORDER, 1)[0]!;
}

/** @returns undefined if the field is no text in this encoding */
function readingIn(encoding: string, field: string): string | undefined {
  const decoder = new TextDecoder(encoding, { fatal: true });
  try {
    // Valid UTF-8 beside an invalid byte means that only this byte has another encoding.
    const isMixed = /\P{ASCII}/u.test(replaceInvalid(field, () => ''));
    const reading = isMixed
      ? replaceInvalid(field, bytes => decoder.decode(bytes))
      : decoder.decode(bytesOfText(field));
    return IMPLAUSIBLE.test(reading) ? undefined : reading;
  } catch {
    return undefined;
  }
}
