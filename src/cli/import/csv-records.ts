import { type Parser, parse } from 'csv-parse';
import { countLineEnds } from './line-ends.ts';

/** Maximum of fields of a row, as in a spreadsheet. A row with more ends the import. */
const ROW_FIELDS_MAX = 16_384;

/** An unquoted empty field is undefined (absent); a quoted one is '' (empty text). */
export type Fields = (string | undefined)[];

export interface CsvRecord {
  /** With a fault, the only field is the text of the record. */
  fields: Fields;
  /** Number of its first line, counted from 1. */
  line: number;
  hasQuotedField: boolean;
  fault?: FormFault;
}

/** Why the fields of a record are not known. */
export interface FormFault {
  message: string;
  /** The message in a rejects file, where the first field has the text of the record. */
  rejectsMessage: string;
}

const OWN_COLUMNS = 'write each value into its own column';

const MISPLACED: FormFault = {
  message: 'the row has a misplaced quote (write a field with quotes as "like ""this""")',
  rejectsMessage: `the row has a misplaced quote; ${OWN_COLUMNS}`,
};

const NEVER_CLOSED: FormFault = {
  message: 'the row has a quote that is never closed',
  rejectsMessage: `the row has a quote that is never closed; ${OWN_COLUMNS}`,
};

export interface RecordForm {
  delimiter: string;
  /** Whether quotes are text and never enclose a field. */
  areQuotesText: boolean;
}

export interface RecordListener {
  /** Called with each record. An error that it throws ends the reading. */
  onRecord(record: CsvRecord): void;
  /** The error that ends the reading at the current record. */
  failure(fault: string): Error;
}

type Done = (error?: Error | null) => void;

/** Reads the records of a CSV text (RFC 4180). Text is never trimmed, and empty lines are skipped. */
export class CsvRecords {
  readonly #parser: Parser;
  readonly #rest: RestOfFile;

  /** @param line number of the first line of the text */
  constructor(form: RecordForm, line: number, { onRecord, failure }: RecordListener) {
    const rest = new RestOfFile(line);
    this.#rest = rest;
    const { delimiter, areQuotesText } = form;
    let hasQuotedField = false;
    /** The current record as a CSV writer would write it. */
    let written = '';
    this.#parser = parse({
      delimiter,
      quote: areQuotesText ? null : '"',
      record_delimiter: ['\r\n', '\n', '\r'],
      relax_column_count: true,
      // The parser makes a misplaced quote text, so the record differs from `written`.
      relax_quotes: true,
      skip_empty_lines: true,
      skip_records_with_error: true,
      // Called only for a quote that is never closed, since the options accept all other faults.
      on_skip: () => {
        const { text, line } = rest.take();
        onRecord({ fields: [text], line, hasQuotedField: true, fault: NEVER_CLOSED });
      },
      cast: (value, { quoting, index }) => {
        if (index === ROW_FIELDS_MAX)
          throw failure(`has more than ${ROW_FIELDS_MAX} fields; check its line end`);
        const enclosed = quoting ? `"${value.replaceAll('"', '""')}"` : undefined;
        // Unquoted text never begins with a quote, so such a record differs from `written`.
        const text = enclosed ?? (hasDoubtfulQuotes(value) ? '"' : value);
        hasQuotedField = quoting || (index > 0 && hasQuotedField);
        written = index === 0 ? text : written + delimiter + text;
        return text === '' ? undefined : value;
      },
      // The records go to the listener, because an error would make the stream lose those it buffers.
      on_record: (fields: Fields, { bytes }) => {
        const { text, line } = rest.take(bytes);
        const isWellFormed = areQuotesText || text === written;
        if (isWellFormed) onRecord({ fields, line, hasQuotedField });
        else onRecord({ fields: [text], line, hasQuotedField, fault: MISPLACED });
        return null;
      },
    });
    // The callback of the write gets every error. Without a listener the error would end the process.
    this.#parser.on('error', () => {});
  }

  /** Number of the line on which the next record begins. */
  get line(): number {
    return this.#rest.line;
  }

  /** Bytes of the incomplete record. */
  get restBytes(): number {
    return this.#rest.bytes;
  }

  /** @returns an error that ends the reading, after the records before it */
  async write(text: string): Promise<Error | undefined> {
    return await new Promise(resolve => this.#parser.write(this.#rest.add(text), settle(resolve)));
  }

  async end(): Promise<Error | undefined> {
    const error = await new Promise<Error | undefined>(resolve => this.#parser.end(settle(resolve)));
    // The rest may be one CR, which no LF can follow at the end of the file.
    if (error === undefined) this.#rest.take();
    return error;
  }

  [Symbol.dispose](): void {
    this.#parser.destroy();
  }
}

function settle(resolve: (error: Error | undefined) => void): Done {
  return error => resolve(error ?? undefined);
}

const CR = 13;
const LF = 10;

/** The text of a file after the records that were read. */
class RestOfFile {
  /** The rest of the text begins with the next record, or with a CR that may be half of a CRLF. */
  #chunks: Buffer[] = [];
  #position = 0;
  #line: number;

  constructor(line: number) {
    this.#line = line;
  }

  get line(): number {
    return this.#line;
  }

  get bytes(): number {
    return this.#chunks.reduce((sum, { length }) => sum + length, 0);
  }

  add(text: string): Buffer {
    const chunk = Buffer.from(text);
    const isRecordIncomplete = this.bytes > 1;
    this.#chunks.push(chunk);
    if (!isRecordIncomplete) this.#skipEmptyLines();
    return chunk;
  }

  /** Removes and returns the text up to a byte, by default all, and the number of its first line. */
  take(end?: number): { text: string; line: number } {
    const bytes = this.#joined();
    const length = end === undefined ? bytes.length : end - this.#position;
    const text = bytes.toString('utf8', 0, length);
    const line = this.#line;
    this.#chunks = [bytes.subarray(length)];
    this.#position += length;
    this.#line += countLineEnds(text);
    this.#skipEmptyLines();
    return { text: text.replace(/(?:\r\n?|\n)$/, ''), line };
  }

  /** The parser reports no empty lines, so a file of them would fill the memory. */
  #skipEmptyLines(): void {
    const bytes = this.#joined();
    let length = 0;
    while (bytes[length] === CR || bytes[length] === LF) length++;
    if (length === bytes.length && bytes[length - 1] === CR) length--;
    this.#line += countLineEnds(bytes.toString('latin1', 0, length));
    this.#position += length;
    this.#chunks = [bytes.subarray(length)];
  }

  #joined(): Buffer {
    return this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks);
  }
}

/**
 * Whether quotes in an unquoted field may be misplaced. Pairs of quotes after a word are text, as in
 * `Acer "Nana"`. All other quotes are doubtful. An odd quote may enclose a delimiter, as in
 * `Acer "Nana, red"`. A quote after a blank may begin the field: `1, "Nana"`. A doubled quote may
 * mean one quote.
 */
function hasDoubtfulQuotes(field: string): boolean {
  // A field with more quotes than the limit counts as doubtful.
  const parts = field.split('"', ROW_FIELDS_MAX);
  if (parts.length === 1) return false;
  return parts.length % 2 === 0 || !/[\p{L}\p{N}]/u.test(parts[0]!) || parts.slice(1, -1).includes('');
}
