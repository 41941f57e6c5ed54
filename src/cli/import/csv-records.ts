import { ROW_FIELDS_MAX, ROW_LENGTH_MAX, ROW_LINES_MAX } from './limits.ts';
import { tooLong } from './plant-row.ts';

/** An unquoted empty field is undefined (absent); a quoted one is '' (empty text). */
export type Fields = (string | undefined)[];

/** One record of a CSV file. If its form has a fault, a message, its only field is its text. */
export interface CsvRecord {
  fields: Fields;
  fault?: string;
}

/** A CR at the end of a chunk may be followed by LF. */
const LINE_END = /(\r\n|\n|\r(?!$))/;

/**
 * Splits the text of a CSV file into records (RFC 4180). Lines end in CRLF, LF or CR. Empty lines
 * are skipped. After a record with a fault, the next line begins a record.
 *
 * @param name the file in messages
 * @returns batches of records: those that end in the same chunk of text
 * @throws {Failure} after the records before it, if a record is too long
 */
export async function* csvRecords(
  name: string,
  texts: AsyncIterable<string>,
  delimiter: string,
): AsyncGenerator<CsvRecord[], void, undefined> {
  const scanner = new RecordScanner(delimiter);
  /** The start of an incomplete line, without a CR at its end. */
  let rest = '';
  let cr = '';
  for await (const text of texts) {
    const parts = (cr + text).split(LINE_END);
    cr = parts.at(-1)!.endsWith('\r') ? '\r' : '';
    parts[0] = rest + parts[0];
    rest = parts.pop()!.slice(0, cr === '' ? undefined : -1);
    yield parts.flatMap((line, index) => (index % 2 === 0 ? scanner.add(line, parts[index + 1]) : []));
    const row = `${name}: ${scanner.place}`;
    if (scanner.text.length + rest.length > ROW_LENGTH_MAX) throw tooLong(row, 'quote');
    if (scanner.lineCount > ROW_LINES_MAX) throw tooLong(row, 'quote', `${ROW_LINES_MAX} lines`);
  }
  if (cr !== '') yield scanner.add(rest, cr);
  yield scanner.add(cr === '' ? rest : '');
}

/** Collects the fields of one record, line by line. */
class RecordScanner {
  /** The lines before the current one; empty on the first line. */
  text = '';
  lineCount = 0;
  readonly #delimiter: string;
  #firstLine = 1;
  #fields: Fields = [];
  /** The start of a quoted field that continues on the next line. */
  #quoted: string | undefined;
  #isMisplaced = false;

  constructor(delimiter: string) {
    this.#delimiter = delimiter;
  }

  /** The record in messages. */
  get place(): string {
    return `the row that begins on line ${this.#firstLine}`;
  }

  /**
   * @param end end of the line; undefined: the file ends there
   * @returns the record that ends with the line, if any
   */
  add(line: string, end?: string): CsvRecord[] {
    this.lineCount++;
    this.#addFields(line);
    this.text += line;
    if (this.#quoted !== undefined && end !== undefined) {
      this.#quoted += end;
      this.text += end;
      return [];
    }
    const [text, fields] = [this.text, this.#fields];
    let fault: string | undefined;
    if (this.#quoted !== undefined) fault = 'a quote that is never closed';
    else if (this.#isMisplaced) fault = 'a misplaced quote (write a field with quotes as "like ""this""")';
    else if (fields.length > ROW_FIELDS_MAX) fault = `more than ${ROW_FIELDS_MAX} fields`;
    const record = fault === undefined ? { fields } : { fields: [text], fault: `${this.place} has ${fault}` };
    this.#firstLine += this.lineCount;
    [this.text, this.#fields, this.lineCount] = ['', [], 0];
    [this.#quoted, this.#isMisplaced] = [undefined, false];
    return text === '' ? [] : [record];
  }

  #addFields(line: string): void {
    if (this.#quoted === undefined && !line.includes('"')) {
      const fields = line.split(this.#delimiter, ROW_FIELDS_MAX + 1);
      this.#fields = fields.map(field => (field === '' ? undefined : field));
      return;
    }
    for (let from = 0; from <= line.length; ) {
      let quoted = this.#quoted;
      if (quoted === undefined && line[from] === '"') {
        quoted = '';
        from++;
      }
      if (quoted !== undefined) {
        let closing = line.indexOf('"', from);
        while (closing >= 0 && line[closing + 1] === '"') closing = line.indexOf('"', closing + 2);
        quoted += line.slice(from, closing < 0 ? undefined : closing).replaceAll('""', '"');
        this.#quoted = closing < 0 ? quoted : undefined;
        if (closing < 0) return;
        from = closing + 1;
      }
      const found = line.indexOf(this.#delimiter, from);
      const to = found < 0 ? line.length : found;
      const text = line.slice(from, to);
      if (quoted === undefined ? !hasQuotesAsText(text) : text !== '') this.#isMisplaced = true;
      if (this.#fields.length <= ROW_FIELDS_MAX)
        this.#fields.push(quoted ?? (text === '' ? undefined : text));
      from = to + this.#delimiter.length;
    }
  }
}

/**
 * Whether each quote in an unquoted field can only be text: quotes in pairs, around words and after
 * a word, such as `Acer "Nana"`. An odd quote may enclose a delimiter: `Acer "Nana, red"`. A quote
 * after a blank may begin the field: `1, "Nana"`. A doubled quote may mean one quote.
 */
function hasQuotesAsText(field: string): boolean {
  // The limit is even, so a field with that many quotes is not accepted.
  const parts = field.split('"', ROW_FIELDS_MAX);
  if (parts.length === 1) return true;
  return parts.length % 2 === 1 && /[\p{L}\p{N}]/u.test(parts[0]!) && !parts.slice(1, -1).includes('');
}
