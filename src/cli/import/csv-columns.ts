import { type NewPlantReading, validateNewPlant } from '../../core/contract/plant.ts';
import { csvLine } from '../../operate/csv.ts';
import { readCsvId } from '../id-text.ts';
import { Failure } from '../output/failure.ts';
import { amount } from '../output/number-text.ts';
import { quoted, SHOWN_LENGTH_MAX, visible } from '../output/visible-text.ts';
import type { CsvRecord, Fields } from './csv-records.ts';
import { LINE_BREAK, OLD_REASON_NAMES, type PlantRow, REASON_NAMES } from './plant-row.ts';
import { isStillNotUtf8 } from './row-encoding.ts';

const MEMBERS = ['id', 'name', 'tag'] as const;
/** If only this column exists, it is an error, since all plants of the file would have no tag. */
const PLURAL_TAG = 'tags';

export interface CsvForm {
  /** Undefined: comma, semicolon or tab, as the header shows. */
  delimiter?: string | undefined;
  /** Names of the columns, if they differ from id, name and tag. An empty `tag`: no column. */
  columns?: Partial<Record<(typeof MEMBERS)[number], string>> | undefined;
  /** `off`: quotes are text. Undefined: on, but the lines of a tab-separated file decide. */
  quotes?: 'on' | 'off' | undefined;
  /** Number of the line with the header; undefined: the first line with text. */
  headerRow?: number | undefined;
}

export interface CsvReading {
  form: CsvForm;
  /** Called with lines about the whole file: the ignored columns, and quotes that are text. */
  onNote: (line: string) => void;
  /** Number of the first line of the text. */
  line?: number;
  /** What to do if the first row is no header. */
  headerHint?: string | undefined;
}

/** The fields of a record, and why they are not one for each column. */
type RecordFields = Pick<CsvRecord, 'fields' | 'fault'>;

/** Makes names comparable. In NFC, a ç equals c with a combining cedilla. */
function keyOf(column: string | undefined): string {
  return (column ?? '').trim().toLowerCase().normalize('NFC');
}

function wantedKeys({ columns = {} }: CsvForm): string[] {
  return MEMBERS.map(member => keyOf(columns[member] ?? member));
}

/** The first line with text, since a spreadsheet can write rows of delimiters before the header. */
const HEADER_LINE = /[^\s,;|"][^\r\n]*/;

/** The members of a plant whose columns a line names. */
function membersIn(line: string, delimiter: string, form: CsvForm): (typeof MEMBERS)[number][] {
  const keys = line.split(delimiter).map(column => keyOf(column.replaceAll('"', '')));
  const wanted = wantedKeys(form);
  return MEMBERS.filter((_, index) => wanted[index] !== '' && keys.includes(wanted[index]!));
}

/** @param start the start of a file: its header, or a line for spreadsheets such as `sep=;` */
export function delimiterOf(start: string, form: CsvForm): string {
  const line = HEADER_LINE.exec(start)?.[0] ?? '';
  const found = (delimiter: string): number => membersIn(line, delimiter, form).length;
  const best = [',', ';', '\t'].reduce((one, other) => (found(other) > found(one) ? other : one));
  return form.delimiter ?? /^sep=([^\w"])/i.exec(line)?.[1] ?? best;
}

/** @returns the names of the columns of a plant in a line, as messages show them */
export function knownColumnsOf(line: string, form: CsvForm): string[] {
  const members = membersIn(line, delimiterOf(line, form), form);
  return members.map(member => visible(form.columns?.[member] ?? member));
}

/** The number of an error in an earlier rejects file. */
const ERROR_NUMBER = /^[1-5][0-9]{4}$/;
/** Start of the message about a wrong number of fields, or about a quote. */
const FORM_FAULT = /^the row has (?:([0-9]+) field|a )/;

/** The columns of a CSV file. It makes a {@link PlantRow} of each record. */
export class Columns {
  /** The last columns of a rejects file, which have the reasons; none in any other file. */
  readonly #reasonNames: readonly string[];
  /** The positions of id, name and tag; undefined if there is no tag. */
  readonly #positions: (number | undefined)[];
  readonly #names: Fields;
  /** The columns of a rejects file without the reasons. Their names need no options. */
  readonly #own: Fields;

  /** @throws {Failure} if the header lacks a column, or has it twice */
  constructor(fileName: string, header: Fields, reading: CsvReading) {
    const { form, onNote } = reading;
    // A spreadsheet adds columns without names for excess fields after the reasons.
    const named = header.slice(0, header.findLastIndex(column => column !== undefined) + 1);
    const endsWith = (names: string[]): boolean => named.slice(-names.length).join() === names.join();
    this.#reasonNames = [REASON_NAMES, OLD_REASON_NAMES].find(endsWith) ?? [];
    if (this.isRejectsFile && form.quotes === 'off')
      throw new Failure(
        `${fileName} is a rejects file, in which quotes always enclose fields; import it without --quotes off`,
        2,
      );
    const own = this.isRejectsFile ? named.slice(0, -this.#reasonNames.length) : header;
    this.#positions = positionsIn(fileName, own, reading);
    this.#names = own;
    const ignored = own.filter((_, index) => !this.#positions.includes(index));
    if (ignored.length > 0) onNote(`${fileName}: only id, name and tag are read; ignored: ${shown(ignored)}`);
    this.#own = own.map((column, index) => {
      const isConfusing = [...MEMBERS, PLURAL_TAG].includes(keyOf(column));
      return MEMBERS[this.#positions.indexOf(index)] ?? (isConfusing ? `ignored ${column}` : column);
    });
  }

  get isRejectsFile(): boolean {
    return this.#reasonNames.length > 0;
  }

  row(number: number, record: CsvRecord): PlantRow {
    const { fields, fault } = this.#withoutReason(record);
    const broken = fault === undefined ? fields.findIndex(field => LINE_BREAK.test(field ?? '')) : -1;
    return {
      number,
      place: () => `line ${record.line} (row ${number})`,
      lineBreak: broken < 0 ? undefined : { column: this.#names[broken] ?? '', text: fields[broken]! },
      reading:
        fault === undefined
          ? this.#read(fields)
          : { kind: 'invalid', error: 'notNewPlant', message: fault.message },
      rejectsFormat: () => ({ kind: 'csv', header: csvLine([...this.#own, ...REASON_NAMES]) }),
      // The order is: own columns, even if fields are missing; the reason; excess fields.
      rejectsLine: ({ error, message }) => {
        const own = this.#own.map((_, index) => fields[index]);
        const reason = [String(record.line), String(number), String(error), fault?.rejectsMessage ?? message];
        return csvLine([...own, ...reason, ...fields.slice(own.length)]);
      },
    };
  }

  /**
   * Removes the reason of an earlier import. A row that had too few fields keeps its message until
   * the user fills a missing field, and a row that is not UTF-8 until U+FFFD is replaced.
   */
  #withoutReason(record: RecordFields): RecordFields {
    const { fields, fault } = record;
    if (!this.isRejectsFile || fault !== undefined) return record;
    const own = fields.slice(0, this.#own.length);
    const excess = fields.slice(own.length);
    const count = this.#reasonNames.length;
    const reason = excess.splice(0, count);
    const [error = '', message = ''] = [reason[count - 2], reason[count - 1]];
    // A user may have deleted the error number of a row without excess fields.
    if (fields.length !== own.length + count && !ERROR_NUMBER.test(error)) return record;
    const formFault = FORM_FAULT.exec(message);
    const had = formFault === null ? own.length : Number(formFault[1] ?? 1);
    if (had < own.length && own.slice(had).every(field => field === undefined))
      return { fields: own.slice(0, had), fault: { kind: 'quote', message, rejectsMessage: message } };
    if (isStillNotUtf8(message, own))
      return { fields: [...own, ...excess], fault: { kind: 'encoding', message, rejectsMessage: message } };
    return { fields: [...own, ...excess] };
  }

  #read(fields: Fields): NewPlantReading {
    const [idText, name, tag] = this.#positions.map(position =>
      position === undefined ? undefined : fields[position],
    );
    const count = this.#own.length;
    // A spreadsheet adds empty fields to rows that are shorter than others.
    if (fields.length < count || fields.slice(count).some(field => field !== undefined)) {
      const message = `the row has ${amount(fields.length, 'field')}, but the first row names ${amount(count, 'column')}`;
      return { kind: 'invalid', error: 'notNewPlant', message };
    }
    return validateNewPlant(readCsvId(idText), name, tag);
  }
}

/** @returns the positions of id, name and tag; undefined if there is no tag */
function positionsIn(fileName: string, header: Fields, reading: CsvReading): (number | undefined)[] {
  const { form } = reading;
  const keys = header.map(keyOf);
  const wanted = wantedKeys(form);
  return wanted.map((key, index) => {
    const isTag = MEMBERS[index] === 'tag';
    if (isTag && key === '') return undefined;
    const position = keys.indexOf(key);
    if (position !== keys.lastIndexOf(key) || wanted.indexOf(key) < index)
      throw new Failure(`${fileName}: the column ${visible(key)} exists more than once; keep only one`);
    if (position >= 0) return position;
    if (!isTag || form.columns?.tag !== undefined)
      throw missingColumn(fileName, header, reading, MEMBERS[index]!);
    const plural = header[keys.indexOf(PLURAL_TAG)]?.trim();
    if (plural === undefined) return undefined;
    throw new Failure(
      `${fileName}: the column ${quoted(plural)} is not known, and there is no column tag; ` +
        `use --columns tag=${visible(plural)} if it has the tags, or --columns tag= to leave it out`,
    );
  });
}

function missingColumn(
  fileName: string,
  header: Fields,
  { form: { columns = {}, headerRow }, headerHint }: CsvReading,
  missing: (typeof MEMBERS)[number],
): Failure {
  const [id, name, tag] = MEMBERS.map(member => visible(columns[member] ?? member));
  const names =
    tag === '' ? `${id} and ${name}` : `${id}, ${name} and ${columns.tag ? '' : 'optionally '}${tag}`;
  const row = headerRow === undefined ? 'the first row' : `line ${headerRow}`;
  return new Failure(
    `${fileName}: the column ${visible(columns[missing] ?? missing)} is missing; ${row} must name the columns ${names}; ` +
      `it is: ${shown(header)}; ${headerHint ?? 'rename a column, or see --columns and --delimiter in --help'}`,
  );
}

function shown(fields: Fields): string {
  const line = visible(fields.map(field => JSON.stringify(field ?? '')).join(', '));
  return line.length > SHOWN_LENGTH_MAX ? `${line.slice(0, SHOWN_LENGTH_MAX)}…` : line;
}
