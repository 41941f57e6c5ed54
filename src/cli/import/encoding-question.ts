const SHOWN_BYTES_MAX = 8;
/** Names that both TextDecoder and iconv know, those of most files first. */
const ENCODINGS = ['WINDOWS-1252', 'WINDOWS-1250', 'WINDOWS-1251', 'MACINTOSH', 'SHIFT_JIS', 'GB18030'];
/** No text has control characters, private characters (made-up letters) or unassigned ones. */
const IMPLAUSIBLE = /[\p{Cc}\p{Co}\p{Cn}]/u;
/** A byte outside a field of CSV, and outside the characters of the encodings above. */
const FIELD_BORDER = /[\t\n\r",;]/;

/** The field around a byte that is not UTF-8, as likely encodings read it. No one knows which is right. */
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
  const met = `the ${bytes.length === 1 ? 'byte' : 'bytes'} ${shown}`;
  return choices.length === 0 ? met : `${met}: ${choices.join(', ')}`;
}

function decoded(bytes: Buffer, encoding: string): string | undefined {
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
