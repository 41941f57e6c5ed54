import { type NewPlantReading, validateNamedPlant } from '../../core/contract/plant.ts';
import { csvLine } from '../../operate/csv.ts';
import { readCsvId } from '../id-text.ts';
import { Failure } from '../output/failure.ts';
import { amount } from '../output/number-text.ts';
import { quoted, SHOWN_LENGTH_MAX, visible } from '../output/visible-text.ts';
import type { CsvRecord, Fields, FormFault } from './csv-records.ts';
import { type MadeId, type MadeIds, OWN_IDS } from './made-ids.ts';
import { LINE_BREAK, type PlantRow, REASON_NAMES } from './plant-row.ts';

const MEMBERS = ['id', 'name', 'tag'] as const;
/** If only this column exists, it is an error, since all plants of the file would have no tag. */
const PLURAL_TAG = 'tags';

export interface CsvForm {
  /** Undefined: comma, semicolon or tab, as the header shows. */
  delimiter?: string | undefined;
  /** Names of the columns, if they differ from id, name and tag. An empty `id` or `tag`: no column. */
  columns?: Partial<Record<(typeof MEMBERS)[number], string>> | undefined;
  /** `off`: quotes are text. Undefined: on, but the lines of a tab-separated file decide. */
  quotes?: 'on' | 'off' | undefined;
}

/** The fields of a record, and why they are not one for each column. */
type RecordFields = Pick<CsvRecord, 'fields' | 'fault'>;

/** Makes names comparable. In NFC, a ç equals c with a combining cedilla. */
function keyOf(column: string | undefined): string {
  return (column ?? '').trim().toLowerCase().normalize('NFC');
}

/** The names of id, name and tag. The id is empty if it is made. */
function wantedKeys({ columns = {} }: CsvForm, ids: MadeIds | undefined): string[] {
  const [id, name, tag] = MEMBERS.map(member => keyOf(columns[member] ?? member));
  return [ids === undefined ? id! : '', name!, tag!];
}

/** The first line with text, since a spreadsheet can write rows of delimiters before the header. */
const HEADER_LINE = /[^\s,;|"][^\r\n]*/;

/** @param start the start of a file: its header, or a line for spreadsheets such as `sep=;` */
export function delimiterOf(start: string, form: CsvForm, ids: MadeIds | undefined): string {
  const line = HEADER_LINE.exec(start)?.[0] ?? '';
  const wanted = [...wantedKeys(form, ids), ...(ids?.columns ?? []).map(keyOf)].filter(key => key !== '');
  const found = (delimiter: string): number => {
    const keys = line.split(delimiter).map(column => keyOf(column.replaceAll('"', '')));
    return wanted.filter(key => keys.includes(key)).length;
  };
  const best = [',', ';', '\t'].reduce((one, other) => (found(other) > found(one) ? other : one));
  return form.delimiter ?? /^sep=([^\w"])/i.exec(line)?.[1] ?? best;
}

/** The number of an error in an earlier rejects file. */
const ERROR_NUMBER = /^[1-5][0-9]{4}$/;
/** Start of the message about a wrong number of fields, or about a quote. */
const FORM_FAULT = /^the row has (?:([0-9]+) field|a )/;

/** How to read the columns. */
interface ColumnReading {
  form: CsvForm;
  /** Makes the ids; undefined if the file has them. */
  ids?: MadeIds | undefined;
  onNote: (line: string) => void;
}

/** The columns of a CSV file. It makes a {@link PlantRow} of each record. */
export class Columns {
  readonly isRejectsFile: boolean;
  readonly #ids: MadeIds | undefined;
  /** The positions of id, name and tag; undefined if there is no tag, or the id is made. */
  readonly #positions: (number | undefined)[];
  /** The positions of the texts that make the id. */
  readonly #idPositions: number[];
  readonly #names: Fields;
  /** The columns of a rejects file without a number and the reasons. */
  readonly #own: Fields;

  /** @throws {Failure} if the header lacks a column, or has it twice, or has ids that are made */
  constructor(fileName: string, header: Fields, { form, ids, onNote }: ColumnReading) {
    // A spreadsheet adds columns without names for excess fields after the reasons.
    const named = header.slice(0, header.findLastIndex(column => column !== undefined) + 1);
    this.isRejectsFile = REASON_NAMES.every((name, index) => named.at(index - REASON_NAMES.length) === name);
    if (this.isRejectsFile && form.quotes === 'off')
      throw new Failure(
        `${fileName} is a rejects file, in which quotes always enclose fields; import it without --quotes off`,
        2,
      );
    if (this.isRejectsFile && ids?.rule.kind === 'numbers')
      throw new Failure(`${fileName} is a rejects file; import it without --number-from`, 2);
    const own = this.isRejectsFile ? named.slice(0, -REASON_NAMES.length) : header;
    this.#ids = ids;
    this.#positions = positionsIn(fileName, own, form, ids);
    this.#idPositions = (ids?.columns ?? []).map(column => positionOf(fileName, own, column));
    this.#names = own;
    const used = [...this.#positions, ...this.#idPositions];
    const ignored = own.filter((_, index) => !used.includes(index));
    const idColumns = this.#idPositions.filter(position => !this.#positions.includes(position));
    const read = ids === undefined ? 'id, ' : idColumns.map(each => `${visible(own[each]!)}, `).join('');
    if (ignored.length > 0)
      onNote(`${fileName}: only ${read}name and tag are read; ignored: ${shown(ignored)}`);
    // The texts that make an id can be in any column, so such a rejects file needs the same options.
    this.#own = ids?.rule.kind === 'texts' ? own : own.map((column, index) => this.#ownName(column, index));
  }

  /** The name of a column in a rejects file. With it, the file needs no options. */
  #ownName(column: string | undefined, index: number): string | undefined {
    const isConfusing = [...MEMBERS, PLURAL_TAG].includes(keyOf(column));
    return MEMBERS[this.#positions.indexOf(index)] ?? (isConfusing ? `ignored ${column}` : column);
  }

  row(number: number, record: CsvRecord): PlantRow {
    const { fields, fault: formFault } = this.#withoutReason(record);
    const broken = formFault === undefined ? fields.findIndex(field => LINE_BREAK.test(field ?? '')) : -1;
    const fault = formFault ?? this.#countFault(fields);
    const madeId = this.#ids?.make(
      fault === undefined ? this.#idPositions.map(position => fields[position]) : undefined,
    );
    return {
      number,
      place: () => `line ${record.line} (row ${number})`,
      lineBreak: broken < 0 ? undefined : { column: this.#names[broken] ?? '', text: fields[broken]! },
      reading:
        fault === undefined
          ? this.#read(fields, madeId)
          : { kind: 'invalid', error: 'notNewPlant', message: fault.message },
      madeId,
      rejectsFormat: () => ({ kind: 'csv', header: csvLine([...this.#rejectsNames(), ...REASON_NAMES]) }),
      // The order is: own columns, even if fields are missing; the reason; excess fields.
      rejectsLine: ({ error, message }) => {
        const id = madeId?.kind === 'id' ? String(madeId.id) : undefined;
        const numberField = this.#isNumbered ? [id] : [];
        // The text of a row whose fields are not known is in the first column, which a number would need.
        const all = formFault === undefined ? [...numberField, ...fields] : fields;
        const note =
          this.#isNumbered && formFault !== undefined && id !== undefined ? `; its id is ${id}` : '';
        const shownMessage = (this.#isNumbered ? fault : formFault)?.rejectsMessage ?? message;
        const names = this.#rejectsNames();
        const own = names.map((_, index) => all[index]);
        const reason = [String(number), String(error), shownMessage + note];
        return csvLine([...own, ...reason, ...all.slice(names.length)]);
      },
    };
  }

  get #isNumbered(): boolean {
    return this.#ids?.rule.kind === 'numbers';
  }

  /** In a rejects file, the number of a row is its id. */
  #rejectsNames(): Fields {
    return this.#isNumbered ? ['id', ...this.#own] : this.#own;
  }

  /**
   * Removes the reason of an earlier import. A row that had too few fields keeps its message until
   * the user fills a missing field.
   */
  #withoutReason(record: RecordFields): RecordFields {
    const { fields, fault } = record;
    const own = fields.slice(0, this.#own.length);
    const [, error = '', message = '', ...excess] = fields.slice(own.length);
    if (!this.isRejectsFile || fault !== undefined) return record;
    // A user may have deleted the error number of a row without excess fields.
    if (fields.length !== own.length + REASON_NAMES.length && !ERROR_NUMBER.test(error)) return record;
    const formFault = FORM_FAULT.exec(message);
    const had = formFault === null ? own.length : Number(formFault[1] ?? 1);
    if (had < own.length && own.slice(had).every(field => field === undefined))
      return { fields: own.slice(0, had), fault: { message, rejectsMessage: message } };
    return { fields: [...own, ...excess] };
  }

  /** Why the fields are not one for each column; undefined if they are. */
  #countFault(fields: Fields): FormFault | undefined {
    const count = this.#own.length;
    // A spreadsheet adds empty fields to rows that are shorter than others.
    if (fields.length >= count && fields.slice(count).every(field => field === undefined)) return undefined;
    const message = (more: number): string =>
      `the row has ${amount(fields.length + more, 'field')}, but the first row names ${amount(count + more, 'column')}`;
    return { message: message(0), rejectsMessage: message(this.#isNumbered ? 1 : 0) };
  }

  #read(fields: Fields, madeId: MadeId | undefined): NewPlantReading {
    const [idText, name, tag] = this.#positions.map(position =>
      position === undefined ? undefined : fields[position],
    );
    if (madeId?.kind === 'id') return validateNamedPlant(madeId.id, name, tag, []);
    if (madeId?.kind === 'fault') return validateNamedPlant(undefined, name, tag, [madeId.fault]);
    if (idText === undefined) return validateNamedPlant(undefined, name, tag, ['id is required']);
    const reading = readCsvId(idText);
    return reading.kind === 'id'
      ? validateNamedPlant(reading.id, name, tag, [])
      : validateNamedPlant(undefined, name, tag, [`id ${quoted(idText)} ${reading.fault}`]);
  }
}

/** @returns the positions of id, name and tag; undefined if there is no tag, or the id is made */
function positionsIn(
  fileName: string,
  header: Fields,
  form: CsvForm,
  ids: MadeIds | undefined,
): (number | undefined)[] {
  const keys = header.map(keyOf);
  const wanted = wantedKeys(form, ids);
  if (ids?.rule.ignoresIds === false && keys.includes('id'))
    throw new Failure(`${fileName} has a column id; ${OWN_IDS}`);
  return wanted.map((key, index) => {
    const isTag = MEMBERS[index] === 'tag';
    if ((isTag && key === '') || (index === 0 && ids !== undefined)) return undefined;
    const position = keys.indexOf(key);
    if (position !== keys.lastIndexOf(key) || wanted.indexOf(key) < index)
      throw repeatedColumn(fileName, key);
    if (position >= 0) return position;
    if (!isTag || form.columns?.tag !== undefined)
      throw missingColumn(fileName, header, form, MEMBERS[index]!, ids);
    const plural = header[keys.indexOf(PLURAL_TAG)]?.trim();
    if (plural === undefined) return undefined;
    throw new Failure(
      `${fileName}: the column ${quoted(plural)} is not known, and there is no column tag; ` +
        `use --columns tag=${visible(plural)} if it has the tags, or --columns tag= to leave it out`,
    );
  });
}

/** @returns the position of a column of `--id-from` */
function positionOf(fileName: string, header: Fields, column: string): number {
  const keys = header.map(keyOf);
  const key = keyOf(column);
  const position = keys.indexOf(key);
  if (position !== keys.lastIndexOf(key)) throw repeatedColumn(fileName, key);
  if (position >= 0) return position;
  throw new Failure(
    `${fileName}: the column ${visible(column)} of --id-from is missing; the first row is: ${shown(header)}`,
  );
}

function repeatedColumn(fileName: string, key: string): Failure {
  return new Failure(`${fileName}: the column ${visible(key)} exists more than once; keep only one`);
}

function missingColumn(
  fileName: string,
  header: Fields,
  { columns = {} }: CsvForm,
  missing: (typeof MEMBERS)[number],
  ids: MadeIds | undefined,
): Failure {
  const [id, name, tag] = MEMBERS.map(member => visible(columns[member] ?? member));
  const required = ids === undefined ? [id, name] : [...ids.columns.map(visible), name];
  const names =
    tag === ''
      ? required.join(' and ')
      : `${required.join(', ')} and ${columns.tag ? '' : 'optionally '}${tag}`;
  return new Failure(
    `${fileName}: the column ${visible(columns[missing] ?? missing)} is missing; the first row must name the columns ${names}; ` +
      `it is: ${shown(header)}; rename a column, or see --columns and --delimiter in --help`,
  );
}

function shown(fields: Fields): string {
  const line = visible(fields.map(field => JSON.stringify(field ?? '')).join(', '));
  return line.length > SHOWN_LENGTH_MAX ? `${line.slice(0, SHOWN_LENGTH_MAX)}…` : line;
}
