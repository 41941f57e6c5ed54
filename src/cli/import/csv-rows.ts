import { type CsvError, parse } from 'csv-parse';
import { checkNewPlant, type NewPlantReading } from '../../contract/plant.ts';
import { csvLine } from '../csv-line.ts';
import { Failure } from '../failure.ts';
import { visible } from '../visible-text.ts';
import { HEADER_LENGTH_SHOWN_MAX, ROW_LENGTH_MAX } from './limits.ts';
import { HARMLESS, type PlantRow, type PlantRows, REASON_NAMES, tooLong } from './plant-row.ts';

/** One record: undefined is an unquoted empty field, an absent value; '' is a quoted one, an empty text. */
type Fields = (string | undefined)[];

const PLANT_COLUMNS: Fields = ['id', 'name', 'tag'];

/**
 * Reads the rows of a CSV file (RFC 4180; lines end in CRLF or LF, empty lines are skipped). Text is kept exactly:
 * nothing is trimmed. The first record names the columns: `id` and `name` are needed, `tag` may be there, others
 * are ignored.
 *
 * @param name how messages call the file
 * @param onNote is told, once, which columns are ignored
 * @throws {Failure} when a needed column is missing or one comes twice, a quote is out of place or never closed,
 *   or a row is too long; all rows before have been handed on then
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
    // Records are taken here and not from the stream: a stream forgets those it holds when the next one is broken.
    on_record: (fields: Fields, { lines }) => {
      lastLine = lines;
      if (columns === undefined) columns = new Columns(name, fields, onNote);
      else rows.push(columns.row(++rowCount, fields));
      return null;
    },
  });
  // Every failure is handed to the callback of the write that met it; without a listener it would end the process.
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
        `${name}: a quote in the row that begins on line ${rowLine} is never closed; ${HARMLESS}`,
      );
    case 'CSV_MAX_RECORD_SIZE':
      return tooLong(`${name}: the row that begins on line ${rowLine}`, 'quote');
    case 'CSV_INVALID_CLOSING_QUOTE':
    case 'INVALID_OPENING_QUOTE':
      return new Failure(
        `${name}: line ${lines} has a quote out of place (a field with a quote in it is written "like ""this"""); ${HARMLESS}`,
      );
    default:
      return error;
  }
}

/** What spreadsheets make of a long number: 9.00719925474099E+15. As JSON it would be an id, but not the one meant. */
const EXPONENT = /[0-9][eE][+-]?[0-9]+$/;

class Columns {
  readonly #count: number;
  readonly #id: number;
  readonly #name: number;
  /** -1 when there is none. */
  readonly #tag: number;
  /** The file's own columns: all but the reasons that an earlier rejects file added at the end. */
  readonly #own: Fields;

  constructor(fileName: string, header: Fields, onNote: (line: string) => void) {
    this.#count = header.length;
    this.#id = header.indexOf('id');
    this.#name = header.indexOf('name');
    this.#tag = header.indexOf('tag');
    if (this.#id < 0 || this.#name < 0) {
      throw new Failure(
        `${fileName}: the first row must name the columns id and name, and tag if there is one, separated by ` +
          `commas; it is: ${shown(header)}`,
      );
    }
    for (const column of PLANT_COLUMNS) {
      if (header.indexOf(column) !== header.lastIndexOf(column))
        throw new Failure(`${fileName}: the column ${column} is there more than once; keep one of them`);
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
      message = `the row has ${fields.length} fields, and the first row names ${this.#count} columns`;
    else if (idText !== undefined && EXPONENT.test(idText))
      message = `id ${visible(idText)} has an exponent, as from a spreadsheet that cuts long numbers; write all its digits`;
    else return checkNewPlant({ idText, name: fields[this.#name], tag: fields[this.#tag] });
    return { error: 'notNewPlant', message };
  }

  /** A row with too few fields is filled up, so that the reason stands in its columns; one with too many is not cut. */
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
