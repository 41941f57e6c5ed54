const SHOWN_BYTES_MAX = 8;
/** Encodings by names that TextDecoder and iconv have in common. The most frequent is first. */
const ENCODINGS = ['WINDOWS-1252', 'WINDOWS-1250', 'WINDOWS-1251', 'MACINTOSH', 'SHIFT_JIS', 'GB18030'];
/** Real text has no control characters, private-use characters or unassigned characters. */
const IMPLAUSIBLE = /[\p{Cc}\p{Co}\p{Cn}]/u;
/** A byte that ends a CSV field. It is no part of a character in the encodings above. */
const FIELD_BORDER = /[\t\n\r",;]/;

/**
 * Shows the field around a byte that is not UTF-8 in likely encodings. Only the user knows the
 * right one.
 */
export function encodingQuestion(context: Buffer, position: number): string {
  const text = context.toString('latin1');
  let start = position;
  while (start > 0 && !FIELD_BORDER.test(text[start - 1]!)) start--;
  let end = position;
  while (end < text.length && !FIELD_BORDER.test(text[end]!)) end++;
  const field = context.subarray(start, end);
  const bytes = [...field].filter(byte => byte >= 0x80).map(byte => byte.toString(16).toUpperCase());
  const shown = bytes.slice(0, SHOWN_BYTES_MAX).join(' ');
  const readings = new Map<string, string[]>();
  for (const encoding of ENCODINGS) {
    const reading = decoded(field, encoding);
    if (reading === undefined || IMPLAUSIBLE.test(reading)) continue;
    readings.set(reading, [...(readings.get(reading) ?? []), encoding]);
  }
  const choices = Array.from(
    readings,
    ([reading, names]) => `${JSON.stringify(reading)} in ${names.join(' or ')}`,
  );
  const what = `the ${bytes.length === 1 ? 'byte' : 'bytes'} ${shown}`;
  return choices.length === 0 ? what : `${what}: ${choices.join(', ')}`;
}

function decoded(bytes: Buffer, encoding: string): string | undefined {
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
