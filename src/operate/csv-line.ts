// RFC 4180 section 2, rule 6: such a field is enclosed in double quotes.
const NEEDS_QUOTES = /[",\r\n]/;

/** Writes one line of a CSV file, ended by LF. An empty text is `""`; an absent value is empty. */
export function csvLine(fields: readonly (string | undefined)[]): string {
  return `${fields.map(csvField).join(',')}\n`;
}

function csvField(value: string | undefined): string {
  if (value === undefined) return '';
  if (value === '') return '""';
  return NEEDS_QUOTES.test(value) ? `"${value.replaceAll('"', '""')}"` : value;
}
