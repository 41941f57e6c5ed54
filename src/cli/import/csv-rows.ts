import { parse } from 'csv-parse';
import { csvLine } from '../../contract/csv-line.ts';
import { checkNewPlant, type NewPlantReading } from '../../contract/plant.ts';
import { Failure } from '../output/failure.ts';
import { amount } from '../output/progress-display.ts';
import { visible } from '../output/visible-text.ts';
import {
  type PlantRow,
  type PlantRows,
  REASON_NAMES,
  ROW_LENGTH_MAX,
  SHOWN_LENGTH_MAX,
  tooLong,
} from './plant-row.ts';

/** Fields of a row: as many as a spreadsheet can have; a row with more ends the import. */
const ROW_FIELDS_MAX = 16_384;

/** An unquoted empty field is undefined (absent); a quoted one is '' (empty text). */
type Fields = (string | undefined)[];

interface CsvRecord {
  /** Only the text of the record if its form has a fault. */
  fields: Fields;
  fault?: string;
}

const MEMBERS = ['id', 'name', 'tag'] as const;
/** Without this rule, all plants of a file with such a column would have no tag. */
const PLURAL_TAG = 'tags';

export interface CsvForm {
  /** Undefined: comma, semicolon or tab, as the header shows. */
  delimiter?: string | undefined;
  /** Names of columns that differ from id, name and tag. An empty name of the tag: no column. */
  columns?: Partial<Record<(typeof MEMBERS)[number], string>> | undefined;
}

function keyOf(column: string | undefined): string {
  return (column ?? '').trim().toLowerCase();
}

function wantedKeys({ columns = {} }: CsvForm): string[] {
  return MEMBERS.map(member => keyOf(columns[member] ?? member));
}

/** @param start the start of a file: its header, or `sep=;`, which is meant for spreadsheets */
function delimiterOf(start: string, form: CsvForm): string {
  const line = /\S[^\r\n]*/.exec(start)?.[0] ?? '';
  const found = (delimiter: string): number => {
    const keys = line.split(delimiter).map(column => keyOf(column.replaceAll('"', '')));
    return wantedKeys(form).filter(key => keys.includes(key)).length;
  };
  const best = [',', ';', '\t'].reduce((one, other) => (found(other) > found(one) ? other : one));
  return form.delimiter ?? /^"?sep=([^\w"])/i.exec(line)?.[1] ?? best;
}

/**
 * Reads the rows of a CSV file (RFC 4180). Text is never trimmed.
 *
 * @param start a start of the text that contains the first line
 * @param onNote called once with a line that names the ignored columns
 * @throws {Failure} after the rows before it: the first record has a fault, or a row is too long
 */
export async function* csvRows(
  name: string,
  texts: AsyncIterable<string>,
  start: string,
  { form, onNote }: { form: CsvForm; onNote: (line: string) => void },
): PlantRows {
  let columns: Columns | undefined;
  let rows: PlantRow[] = [];
  let rowCount = 0;
  const rest = new RestOfFile();
  const failure = (fault: string): Failure =>
    new Failure(`${name}: ${columns === undefined ? 'the first row' : `row ${rowCount + 1}`} ${fault}`);
  const add = (record: CsvRecord): void => {
    if (columns !== undefined) rows.push(columns.row(++rowCount, record));
    else if (record.fault !== undefined) throw new Failure(`${name}, first row: ${record.fault}`);
    else if (!record.fields[0]?.startsWith('sep=')) columns = new Columns(name, record.fields, form, onNote);
  };
  const delimiter = delimiterOf(start, form);
  /** The current record as it must be written. */
  let written = '';
  const parser = parse({
    delimiter,
    record_delimiter: ['\r\n', '\n', '\r'],
    relax_column_count: true,
    // A misplaced quote becomes text. Then the record differs from `written`.
    relax_quotes: true,
    skip_empty_lines: true,
    skip_records_with_error: true,
    // With the options above, no other fault is an error.
    on_skip: () => {
      add({ fields: [rest.take()], fault: 'the row has a quote that is never closed' });
    },
    cast: (value, { quoting, index }) => {
      if (index === ROW_FIELDS_MAX)
        throw failure(`has more than ${ROW_FIELDS_MAX} fields; check its line end`);
      const quoted = quoting ? `"${value.replaceAll('"', '""')}"` : undefined;
      // Unquoted text never begins with a quote. So a quote makes the record differ.
      const text = quoted ?? (hasDoubtfulQuotes(value) ? '"' : value);
      written = index === 0 ? text : written + delimiter + text;
      return text === '' ? undefined : value;
    },
    // The stream would lose its buffered records when the next record ends the import.
    on_record: (fields: Fields, { bytes }) => {
      const text = rest.take(bytes);
      const fault = 'the row has a misplaced quote (write a field with quotes as "like ""this""")';
      add(text === written ? { fields } : { fields: [text], fault });
      return null;
    },
  });
  // The callback of the write gets every error. Without a listener the error would end the process.
  parser.on('error', () => {});
  type Done = (error?: Error | null) => void;
  async function* rowsOf(give: (done: Done) => void): PlantRows {
    const error = await new Promise<Error | null | undefined>(resolve => give(resolve));
    if (rows.length > 0) yield rows;
    rows = [];
    if (error) throw error;
  }

  try {
    for await (const text of texts) {
      yield* rowsOf(done => parser.write(rest.add(text), done));
      if (rest.length > ROW_LENGTH_MAX) throw failure(tooLong('quote'));
    }
    yield* rowsOf(done => parser.end(done));
  } finally {
    parser.destroy();
  }
}

/** The text of a file after the records that were read. */
class RestOfFile {
  #chunks: Buffer[] = [];
  #position = 0;

  get length(): number {
    return this.#chunks.reduce((sum, { length }) => sum + length, 0);
  }

  add(text: string): Buffer {
    const chunk = Buffer.from(text);
    this.#chunks.push(chunk);
    return chunk;
  }

  /** Removes and returns the text up to a byte of the file, without the line ends around it. */
  take(end = Infinity): string {
    const bytes = this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks);
    const length = end - this.#position;
    this.#chunks = [bytes.subarray(length)];
    this.#position = end;
    return bytes.toString('utf8', 0, length).replace(/^[\r\n]+|(?:\r\n?|\n)$/g, '');
  }
}

/**
 * Quotes in an unquoted field are text in pairs after a word: `Acer "Nana"`. An odd quote may
 * enclose a delimiter: `Acer "Nana, red"`. A quote after a blank may begin the field: `1, "Nana"`.
 * A doubled quote may mean one quote.
 */
function hasDoubtfulQuotes(field: string): boolean {
  // The limit is even, so a field with that many quotes is doubtful.
  const parts = field.split('"', ROW_FIELDS_MAX);
  if (parts.length === 1) return false;
  return parts.length % 2 === 0 || !/[\p{L}\p{N}]/u.test(parts[0]!) || parts.slice(1, -1).includes('');
}

/** Spreadsheets write long numbers like 9.00719925474099E+15. As JSON that would be a wrong id. */
const EXPONENT = /[0-9][eE][+-]?[0-9]+$/;
/** The number of an error in an earlier rejects file. */
const ERROR_NUMBER = /^[1-5][0-9]{4}$/;
/** Start of the message of a row whose form was rejected: a number of fields, or a quote. */
const FORM_FAULT = /^the row has (?:([0-9]+) field|a )/;

class Columns {
  /** Whether the file is a rejects file. */
  readonly #hasReasons: boolean;
  readonly #positions: number[];
  /** The columns of a rejects file, except the reasons. They can be imported without options. */
  readonly #own: Fields;

  constructor(fileName: string, header: Fields, form: CsvForm, onNote: (line: string) => void) {
    // A spreadsheet names no column for the excess fields that follow the reasons.
    const named = header.slice(0, header.findLastIndex(column => column !== undefined) + 1);
    this.#hasReasons = REASON_NAMES.every((name, index) => named.at(index - REASON_NAMES.length) === name);
    const own = this.#hasReasons ? named.slice(0, -REASON_NAMES.length) : header;
    this.#positions = positionsIn(fileName, own, form);
    const ignored = own.filter((_, index) => !this.#positions.includes(index));
    if (ignored.length > 0) onNote(`${fileName}: only id, name and tag are read; ignored: ${shown(ignored)}`);
    this.#own = own.map((column, index) => {
      const isConfusing = [...MEMBERS, PLURAL_TAG].includes(keyOf(column));
      return MEMBERS[this.#positions.indexOf(index)] ?? (isConfusing ? `ignored ${column}` : column);
    });
  }

  row(number: number, record: CsvRecord): PlantRow {
    const { fields, fault } = this.#withoutReason(record);
    return {
      number,
      reading: fault === undefined ? this.#read(fields) : { error: 'notNewPlant', message: fault },
      rejectsHeader: () => csvLine([...this.#own, ...REASON_NAMES]),
      // The reason follows the own columns, also if fields are missing. Excess fields follow it.
      rejectsLine: ({ error, message }) => {
        const own = this.#own.map((_, index) => fields[index]);
        return csvLine([...own, String(number), String(error), message, ...fields.slice(own.length)]);
      },
    };
  }

  /**
   * Removes the reason of an earlier import. A row that had too few fields keeps its message, until
   * one of the missing fields is filled.
   */
  #withoutReason(record: CsvRecord): CsvRecord {
    const { fields, fault } = record;
    const own = fields.slice(0, this.#own.length);
    const [, error = '', message = '', ...excess] = fields.slice(own.length);
    if (!this.#hasReasons || fault !== undefined) return record;
    // A row without excess fields may have lost the number of its error.
    if (fields.length !== own.length + REASON_NAMES.length && !ERROR_NUMBER.test(error)) return record;
    const formFault = FORM_FAULT.exec(message);
    const had = formFault === null ? own.length : Number(formFault[1] ?? 1);
    if (had < own.length && own.slice(had).every(field => field === undefined))
      return { fields: own.slice(0, had), fault: message };
    return { fields: [...own, ...excess] };
  }

  #read(fields: Fields): NewPlantReading {
    const [idText, name, tag] = this.#positions.map(position => fields[position]);
    const count = this.#own.length;
    let message: string;
    // A spreadsheet adds empty fields to rows that are shorter than others.
    if (fields.length < count || fields.slice(count).some(field => field !== undefined))
      message = `the row has ${amount(fields.length, 'field')}, but the first row names ${amount(count, 'column')}`;
    else if (idText !== undefined && EXPONENT.test(idText))
      message = `id ${visible(idText)} has an exponent; a spreadsheet may have rounded it; write all digits`;
    else return checkNewPlant({ idText, name, tag });
    return { error: 'notNewPlant', message };
  }
}

/** @returns the positions of id, name and tag; -1 if there is no tag */
function positionsIn(fileName: string, header: Fields, form: CsvForm): number[] {
  const keys = header.map(keyOf);
  const wanted = wantedKeys(form);
  return wanted.map((key, index) => {
    const isTag = MEMBERS[index] === 'tag';
    if (isTag && key === '') return -1;
    const position = keys.indexOf(key);
    if (position !== keys.lastIndexOf(key) || wanted.indexOf(key) < index)
      throw new Failure(`${fileName}: the column ${visible(key)} exists more than once; keep only one`);
    if (position >= 0) return position;
    if (isTag && form.columns?.tag === undefined && !keys.includes(PLURAL_TAG)) return -1;
    throw new Failure(
      `${fileName}: the first row must name the columns ${wanted[0]}, ${wanted[1]} and optionally ${wanted[2]}; ` +
        `it is: ${shown(header)}; rename a column, or see --columns and --delimiter in --help`,
    );
  });
}

function shown(fields: Fields): string {
  const line = visible(fields.map(field => JSON.stringify(field ?? '')).join(', '));
  return line.length > SHOWN_LENGTH_MAX ? `${line.slice(0, SHOWN_LENGTH_MAX)}…` : line;
}
