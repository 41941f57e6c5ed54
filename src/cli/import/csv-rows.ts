import { type CsvError, parse } from 'csv-parse';
import { checkNewPlant, type NewPlantReading } from '../../contract/plant.ts';
import { csvLine } from '../csv-line.ts';
import { Failure } from '../failure.ts';
import { visible } from '../visible-text.ts';
import { HEADER_LENGTH_SHOWN_MAX, ROW_LENGTH_MAX } from './limits.ts';
import { type PlantRow, type PlantRows, REASON_NAMES, ROWS_SENT, tooLong } from './plant-row.ts';

/** One record. An unquoted empty field is undefined (absent); a quoted one is '' (empty text). */
type Fields = (string | undefined)[];

const PLANT_COLUMNS: Fields = ['id', 'name', 'tag'];

/**
 * Reads the rows of a CSV file (RFC 4180). Lines end in CRLF or LF; empty lines are skipped. Text
 * is never trimmed. The first record names the columns: `id` and `name` are required, `tag` is
 * optional, others are ignored.
 *
 * @param name the file in messages
 * @param onNote called once with a line that names the ignored columns
 * @throws {Failure} behind the last sound row: a required column is missing or repeated, a quote is
 *   misplaced or unclosed, a row is too long
 */
export async function* csvRows(
  name: string,
  texts: AsyncIterable<string>,
  onNote: (line: string) => void,
): PlantRows {
  let columns: Columns | undefined;
  let rows: PlantRow[] = [];
  let rowCount = 0;
  let lastLine = 0;
  const parser = parse({
    record_delimiter: ['\r\n', '\n'],
    relax_column_count: true,
    skip_empty_lines: true,
    max_record_size: ROW_LENGTH_MAX,
    cast: (value, { quoting }) => (value === '' && !quoting ? undefined : value),
    // Not from the stream: it would lose its buffered records when the next record is invalid.
    on_record: (fields: Fields, { lines }) => {
      lastLine = lines;
      if (columns === undefined) columns = new Columns(name, fields, onNote);
      else rows.push(columns.row(++rowCount, fields));
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
      return new Failure(
        `${name}: a quote in the row that begins on line ${rowLine} is never closed; ${ROWS_SENT}`,
      );
    case 'CSV_MAX_RECORD_SIZE':
      return tooLong(`${name}: the row that begins on line ${rowLine}`, 'quote');
    case 'CSV_INVALID_CLOSING_QUOTE':
    case 'INVALID_OPENING_QUOTE':
      return new Failure(
        `${name}: line ${lines} has a misplaced quote (write a field with quotes as "like ""this"""); ${ROWS_SENT}`,
      );
    default:
      return error;
  }
}

/** Spreadsheets write long numbers like 9.00719925474099E+15. As JSON that would be a wrong id. */
const EXPONENT = /[0-9][eE][+-]?[0-9]+$/;

class Columns {
  readonly #count: number;
  readonly #id: number;
  readonly #name: number;
  /** -1 if there is none. */
  readonly #tag: number;
  /** All columns except the reasons at the end of an earlier rejects file. */
  readonly #own: Fields;

  constructor(fileName: string, header: Fields, onNote: (line: string) => void) {
    this.#count = header.length;
    this.#id = header.indexOf('id');
    this.#name = header.indexOf('name');
    this.#tag = header.indexOf('tag');
    if (this.#id < 0 || this.#name < 0) {
      throw new Failure(
        `${fileName}: the first row must name the columns id, name and optionally tag, separated by commas; ` +
          `it is: ${shown(header)}`,
      );
    }
    for (const column of PLANT_COLUMNS) {
      if (header.indexOf(column) !== header.lastIndexOf(column))
        throw new Failure(`${fileName}: the column ${column} exists more than once; keep only one`);
    }
    const hasReasons = REASON_NAMES.every(
      (column, index) => header.at(index - REASON_NAMES.length) === column,
    );
    this.#own = hasReasons ? header.slice(0, -REASON_NAMES.length) : header;
    const ignored = this.#own.filter(column => !PLANT_COLUMNS.includes(column));
    if (ignored.length > 0) onNote(`${fileName}: only id, name and tag are read; ignored: ${shown(ignored)}`);
  }

  row(number: number, fields: Fields): PlantRow {
    return {
      number,
      reading: this.#read(fields),
      rejectsHeader: () => csvLine([...this.#own, ...REASON_NAMES]),
      rejectsLine: ({ error, message }) =>
        csvLine([...this.#ownFields(fields), String(number), String(error), message]),
    };
  }

  #read(fields: Fields): NewPlantReading {
    const idText = fields[this.#id];
    let message: string;
    if (fields.length !== this.#count)
      message = `the row has ${fields.length} fields, but the first row names ${this.#count} columns`;
    else if (idText !== undefined && EXPONENT.test(idText))
      message = `id ${visible(idText)} has an exponent; a spreadsheet may have rounded it; write all digits`;
    else return checkNewPlant({ idText, name: fields[this.#name], tag: fields[this.#tag] });
    return { error: 'notNewPlant', message };
  }

  /** Adds missing fields, so that the reason is in its own columns. Excess fields stay. */
  #ownFields(fields: Fields): Fields {
    const own = [...fields];
    while (own.length < this.#count) own.push(undefined);
    own.length -= this.#count - this.#own.length;
    return own;
  }
}

function shown(fields: Fields): string {
  const line = fields.map(field => JSON.stringify(field ?? '')).join(', ');
  return line.length > HEADER_LENGTH_SHOWN_MAX ? `${line.slice(0, HEADER_LENGTH_SHOWN_MAX)}…` : line;
}
