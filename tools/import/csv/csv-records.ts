import { isUtf8 } from 'node:buffer';
import { type Parser, parse } from 'csv-parse';
import { Failure } from '../../../src/cli/shared/failure.ts';
import { amount } from '../../../src/formats/number-text.ts';
import { encodingFault, type FormFault } from '../rejects/rejects-format.ts';
import { countLineEnds } from '../text/line-ends.ts';
import { bytesOfText, escapedText } from '../text/utf8-texts.ts';
import { openQuoteIn } from './unclosed-quotes.ts';

/** Maximum of fields of a row, as in a spreadsheet. A row with more ends the import. */
const ROW_FIELDS_MAX = 16_384;

/** An unquoted empty field is undefined (absent); a quoted one is '' (empty text). */
export type Fields = (string | undefined)[];

export interface CsvRecord {
  /** With a fault of a quote, the only field is the text of the record. */
  fields: Fields;
  /** Number of its first line, counted from 1. */
  line: number;
  hasQuotedField: boolean;
  fault?: FormFault;
}

function quoteFault(fault: string): FormFault {
  const advice =
    'write each value into its own column; in a text editor, enclose a value that has quotes, and double these';
  return { code: 'quotes', message: `the row has a ${fault}; ${advice}` };
}

function misplacedQuote(text: string, line: number): FormFault {
  const lines = countLineEnds(text) + 1;
  // The quote of an earlier row may be unclosed up to a quote in this text.
  const extent = lines === 1 ? '' : ` in ${lines} lines from line ${line} on, so it may not be closed`;
  return quoteFault(`misplaced quote${extent}`);
}

function unclosedQuote(text: string, line: number, delimiter: string): FormFault {
  return quoteFault(`quote that is never closed${extentOfQuote(text, line, delimiter)}`);
}

/** @returns a text such as `: it begins in line 3, and takes 12 lines`; empty if no quote is open */
function extentOfQuote(text: string, line: number, delimiter: string): string {
  const quote = openQuoteIn(text, delimiter);
  if (quote === undefined) return '';
  const start = line + countLineEnds(text.slice(0, quote));
  return `: it begins in line ${start}, and takes ${amount(countLineEnds(text.slice(quote)) + 1, 'line')}`;
}

export interface RecordForm {
  delimiter: string;
  /** Whether quotes are text and never enclose a field. */
  areQuotesText: boolean;
  /** Undefined: UTF-8. */
  encoding: string | undefined;
}

/** Records that were read. */
export interface RecordsRead {
  records: CsvRecord[];
  /** Why the reading has ended at the next record; undefined if it goes on. */
  fault: string | undefined;
}

/** Adds the fault of invalid bytes to that of quotes, if the text has one or both. */
function withEncoding(quotes: FormFault | undefined, encoding: FormFault | undefined): FormFault | undefined {
  if (quotes === undefined || encoding === undefined) return quotes ?? encoding;
  return { code: 'quotes encoding', message: `${quotes.message}; ${encoding.message}` };
}

/** Reads the records of a CSV text (RFC 4180). Text is never trimmed, and empty lines are skipped. */
export class CsvRecords {
  readonly #parser: Parser;
  readonly #rest: RestOfFile;
  readonly #delimiter: string;
  /** The records that were read and not returned. */
  #records: CsvRecord[] = [];

  /** @param line number of the first line of the text */
  constructor({ delimiter, areQuotesText, encoding }: RecordForm, line: number) {
    const rest = new RestOfFile(line);
    this.#rest = rest;
    const encodingFaultOf = (escaped: string | undefined): FormFault | undefined =>
      escaped === undefined ? undefined : encodingFault(escaped, encoding);
    this.#delimiter = delimiter;
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
        const { text, line, escaped } = rest.take();
        const fault = withEncoding(unclosedQuote(text, line, delimiter), encodingFaultOf(escaped))!;
        this.#records.push({ fields: [text], line, hasQuotedField: true, fault });
      },
      cast: (value, { quoting, index }) => {
        if (index === ROW_FIELDS_MAX)
          throw new Failure(`has more than ${ROW_FIELDS_MAX} fields; check its line end`);
        const enclosed = quoting ? `"${value.replaceAll('"', '""')}"` : undefined;
        // Unquoted text never begins with a quote, so such a record differs from `written`.
        const text = enclosed ?? (hasDoubtfulQuotes(value) ? '"' : value);
        hasQuotedField = quoting || (index > 0 && hasQuotedField);
        written = index === 0 ? text : written + delimiter + text;
        return text === '' ? undefined : value;
      },
      // The parser passes no record on, because an error would make the stream lose those it buffers.
      on_record: (fields: Fields, { bytes }) => {
        const { text, line, escaped } = rest.take(bytes);
        const isWellFormed = areQuotesText || text === written;
        const quotes = isWellFormed ? undefined : misplacedQuote(text, line);
        const fault = withEncoding(quotes, encodingFaultOf(escaped));
        const found = { fields: isWellFormed ? fields : [text], line, hasQuotedField };
        this.#records.push(fault === undefined ? found : { ...found, fault });
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

  /** Where the quote begins that is open in the incomplete record, for a message. */
  openQuote(): string {
    return extentOfQuote(this.#rest.text, this.#rest.line, this.#delimiter);
  }

  async write(text: string): Promise<RecordsRead> {
    const chunk = this.#rest.add(text);
    return await this.#read(onRead => this.#parser.write(chunk, onRead));
  }

  async end(): Promise<RecordsRead> {
    const last = await this.#read(onRead => this.#parser.end(onRead));
    // The rest may be one CR, which no LF can follow at the end of the file.
    if (last.fault === undefined) this.#rest.take();
    return last;
  }

  async #read(parse: (onRead: (error?: Error | null) => void) => void): Promise<RecordsRead> {
    const error = await new Promise<Error | null | undefined>(parse);
    if (error && !(error instanceof Failure)) throw error;
    const records = this.#records;
    this.#records = [];
    return { records, fault: error?.message };
  }

  [Symbol.dispose](): void {
    this.#parser.destroy();
  }
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

  get text(): string {
    return this.#joined().toString('utf8');
  }

  add(text: string): Buffer {
    const chunk = bytesOfText(text);
    const isRecordIncomplete = this.bytes > 1;
    this.#chunks.push(chunk);
    if (!isRecordIncomplete) this.#skipEmptyLines();
    return chunk;
  }

  /**
   * Removes and returns the text up to a byte, by default all, and the number of its first line.
   * `escaped` shows its invalid bytes, if it has any.
   */
  take(end?: number): { text: string; line: number; escaped: string | undefined } {
    const rest = this.#joined();
    const bytes = end === undefined ? rest : rest.subarray(0, end - this.#position);
    const text = bytes.toString();
    const escaped = isUtf8(bytes) ? undefined : escapedText(bytes);
    const line = this.#line;
    this.#remove(bytes.length, text);
    this.#skipEmptyLines();
    return { text: text.replace(/(?:\r\n?|\n)$/, ''), line, escaped };
  }

  /** The parser reports no empty lines, so a file of them would fill the memory. */
  #skipEmptyLines(): void {
    const bytes = this.#joined();
    let length = 0;
    while (bytes[length] === CR || bytes[length] === LF) length++;
    if (length === bytes.length && bytes[length - 1] === CR) length--;
    this.#remove(length, bytes.toString('latin1', 0, length));
  }

  #remove(length: number, text: string): void {
    this.#line += countLineEnds(text);
    this.#position += length;
    this.#chunks = [this.#joined().subarray(length)];
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
