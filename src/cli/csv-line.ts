// RFC 4180 section 2, rule 6: a field with a line break, a double quote or a comma is enclosed in double quotes.
const NEEDS_QUOTES = /[",\r\n]/;

/**
 * Writes one line of a CSV file, ended by LF. A field is quoted only where RFC 4180 section 2 demands it, with one
 * addition that lets an absent value, undefined, and an empty text be told apart: an absent one is an empty field, an empty
 * text is `""`.
 */
export function csvLine(fields: readonly (string | undefined)[]): string {
  return `${fields.map(csvField).join(',')}\n`;
}

function csvField(value: string | undefined): string {
  if (value === undefined) return '';
  if (value === '') return '""';
  return NEEDS_QUOTES.test(value) ? `"${value.replaceAll('"', '""')}"` : value;
}
