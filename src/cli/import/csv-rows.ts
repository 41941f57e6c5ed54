import { type CsvError, parse } from 'csv-parse';
import { csvLine } from '../../contract/csv-line.ts';
import { checkNewPlant, type NewPlantReading } from '../../contract/plant.ts';
import { Failure } from '../failure.ts';
import { amount } from '../progress-display.ts';
import { visible } from '../visible-text.ts';
import { ROW_LENGTH_MAX, SHOWN_LENGTH_MAX } from './limits.ts';
import { isOneEditAway } from './near-text.ts';
import { type PlantRow, type PlantRows, REASON_NAMES, tooLong } from './plant-row.ts';

/** One record. An unquoted empty field is undefined (absent); a quoted one is '' (empty text). */
type Fields = (string | undefined)[];

const MEMBERS = ['id', 'name', 'tag'] as const;

export interface CsvForm {
  /** Undefined: comma, semicolon or tab, as the header shows. */
  delimiter?: string | undefined;
  /** Names of columns that differ from id, name and tag. An empty name of the tag: no column. */
  columns?: Partial<Record<(typeof MEMBERS)[number], string>> | undefined;
}

/** Names of columns match if their keys are equal. */
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
 * Reads the rows of a CSV file (RFC 4180). Lines end in CRLF, LF or CR; empty lines are skipped.
 * Text is never trimmed. The first record names the columns, in any case and with outer blanks:
 * `id` and `name` are required, `tag` is optional, others are ignored.
 *
 * @param name the file in messages
 * @param start a start of the text that contains the first line
 * @param onNote called once with a line that names the ignored columns
 * @throws {Failure} after the last valid row: a column is missing, repeated or mistyped, a quote
 *   is misplaced or unclosed, a row is too long
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
  let lastLine = 0;
  const parser = parse({
    delimiter: delimiterOf(start, form),
    record_delimiter: ['\r\n', '\n', '\r'],
    relax_column_count: true,
    skip_empty_lines: true,
    max_record_size: ROW_LENGTH_MAX,
    cast: (value, { quoting }) => (value === '' && !quoting ? undefined : value),
    // Not from the stream: it would lose its buffered records when the next record is invalid.
    on_record: (fields: Fields, { lines }) => {
      lastLine = lines;
      if (columns !== undefined) rows.push(columns.row(++rowCount, fields));
      else if (!fields[0]?.startsWith('sep=')) columns = new Columns(name, fields, form, onNote);
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
    if (error) throw named(name, error, lastLine + 1);
  }

  try {
    for await (const text of texts) yield* rowsOf(done => parser.write(text, done));
    yield* rowsOf(done => parser.end(done));
  } finally {
    parser.destroy();
  }
}

function named(name: string, error: Error, rowLine: number): Error {
  const { code, lines } = error as CsvError;
  switch (code) {
    case 'CSV_QUOTE_NOT_CLOSED':
      return new Failure(`${name}: a quote in the row that begins on line ${rowLine} is never closed`);
    case 'CSV_MAX_RECORD_SIZE':
      return tooLong(`${name}: the row that begins on line ${rowLine}`, 'quote');
    case 'CSV_INVALID_CLOSING_QUOTE':
    case 'INVALID_OPENING_QUOTE':
      return new Failure(
        `${name}: line ${lines} has a misplaced quote (write a field with quotes as "like ""this""")`,
      );
    default:
      return error;
  }
}

/** Spreadsheets write long numbers like 9.00719925474099E+15. As JSON that would be a wrong id. */
const EXPONENT = /[0-9][eE][+-]?[0-9]+$/;
/** The number of an error in an earlier rejects file. */
const ERROR_NUMBER = /^[1-5][0-9]{4}$/;

class Columns {
  readonly #count: number;
  /** Of id, name and tag; -1 if there is no tag. */
  readonly #positions: number[];
  /** The columns of a rejects file, except the reasons. They can be imported without options. */
  readonly #own: Fields;

  constructor(fileName: string, header: Fields, form: CsvForm, onNote: (line: string) => void) {
    // A spreadsheet names no column for the excess fields that follow the reasons.
    const named = header.slice(0, header.findLastIndex(column => column !== undefined) + 1);
    const hasReasons = REASON_NAMES.every((name, index) => named.at(index - REASON_NAMES.length) === name);
    this.#count = hasReasons ? named.length : header.length;
    const own = hasReasons ? named.slice(0, -REASON_NAMES.length) : header;
    this.#positions = positionsIn(fileName, own, form);
    const ignored = own.filter((_, index) => !this.#positions.includes(index));
    if (ignored.length > 0) onNote(`${fileName}: only id, name and tag are read; ignored: ${shown(ignored)}`);
    this.#own = own.map((column, index) => {
      const key = keyOf(column);
      const isConfusing = MEMBERS.some(member => key === member || isOneEditAway(key, member));
      return MEMBERS[this.#positions.indexOf(index)] ?? (isConfusing ? `ignored ${column}` : column);
    });
  }

  row(number: number, fields: Fields): PlantRow {
    return {
      number,
      reading: this.#read(fields),
      rejectsHeader: () => csvLine([...this.#own, ...REASON_NAMES]),
      rejectsLine: ({ error, message }) =>
        this.#rejectsLine(fields, [String(number), String(error), message]),
    };
  }

  #read(fields: Fields): NewPlantReading {
    const [idText, name, tag] = this.#positions.map(position => fields[position]);
    let message: string;
    // A spreadsheet adds empty fields to rows that are shorter than others.
    if (fields.length < this.#count || fields.slice(this.#count).some(field => field !== undefined))
      message = `the row has ${amount(fields.length, 'field')}, but the first row names ${amount(this.#count, 'column')}`;
    else if (idText !== undefined && EXPONENT.test(idText))
      message = `id ${visible(idText)} has an exponent; a spreadsheet may have rounded it; write all digits`;
    else return checkNewPlant({ idText, name, tag });
    return { error: 'notNewPlant', message };
  }

  /** The reason follows the own columns, also if fields are missing. Excess fields follow it. */
  #rejectsLine(fields: Fields, reason: string[]): string {
    const own = this.#own.map((_, index) => fields[index]);
    const hasReason = fields.length <= this.#count || ERROR_NUMBER.test(fields[own.length + 1] ?? '');
    return csvLine([...own, ...reason, ...fields.slice(hasReason ? this.#count : own.length)]);
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
    const near = keys.find(each => !wanted.includes(each) && isOneEditAway(each, key));
    if (isTag && near === undefined && form.columns?.tag === undefined) return -1;
    const advice = near === undefined ? '' : `rename ${shown([header[keys.indexOf(near)]])}, or `;
    throw new Failure(
      `${fileName}: the first row must name the columns ${wanted[0]}, ${wanted[1]} and optionally ${wanted[2]}; ` +
        `it is: ${shown(header)}; ${advice}see --columns and --delimiter in --help`,
    );
  });
}

function shown(fields: Fields): string {
  const line = visible(fields.map(field => JSON.stringify(field ?? '')).join(', '));
  return line.length > SHOWN_LENGTH_MAX ? `${line.slice(0, SHOWN_LENGTH_MAX)}…` : line;
}
