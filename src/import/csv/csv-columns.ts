import { readCsvId } from '../../cli/id-text.ts';
import { Failure } from '../../cli/output/failure.ts';
import { amount } from '../../cli/output/number-text.ts';
import { visible } from '../../cli/output/visible-text.ts';
import { type NewPlantReading, validateNewPlant } from '../../core/contract/plant.ts';
import { csvLine } from '../../operate/csv.ts';
import { type FormFault, fieldCountOf, hidesFields, isFormCode, isStillNotUtf8 } from '../rows/form-fault.ts';
import type { IdMaker, MadeId } from '../rows/id-maker.ts';
import { LINE_BREAK, MEMBERS, type PlantRow, REASON_NAMES, shownColumns } from '../rows/plant-row.ts';
import { type CsvOptions, keyOf, PLURAL_TAG, type Positions, positionsIn } from './csv-header.ts';
import type { CsvRecord, Fields } from './csv-records.ts';

/** The fields of a record, and why they are not one for each column. */
type RecordFields = Pick<CsvRecord, 'fields' | 'fault'>;

/** What a rejects file has of a row. */
interface Rejected {
  fields: Fields;
  /** A code of the form, or the number of an error of the API. */
  code: string;
  message: string;
}

/** The number of an error of the API. */
const ERROR_NUMBER = /^[1-5][0-9]{4}$/;

/** The columns of a CSV file. It makes a {@link PlantRow} of each record. */
export class Columns {
  readonly #ids: IdMaker | undefined;
  /** Whether the last columns have the reasons. */
  readonly isRejectsFile: boolean;
  readonly #positions: Positions;
  readonly #names: Fields;
  /** The columns of a rejects file, without a number and the reasons. */
  readonly #own: Fields;

  /** @throws {Failure} if the header lacks a column, or has it twice, or has ids that are made */
  constructor(fileName: string, header: Fields, options: CsvOptions) {
    const { form, ids } = options;
    // A spreadsheet adds columns without names for excess fields after the reasons.
    const named = header.slice(0, header.findLastIndex(column => column !== undefined) + 1);
    this.isRejectsFile = named.slice(-REASON_NAMES.length).join() === REASON_NAMES.join();
    if (this.isRejectsFile && form.quotes === 'off')
      throw new Failure(
        `${fileName} is a rejects file, in which quotes always enclose fields; import it without --quotes off`,
        2,
      );
    if (this.isRejectsFile && ids?.rule.kind === 'numbers')
      throw new Failure(`${fileName} is a rejects file; import it without --number-from`, 2);
    const own = this.isRejectsFile ? named.slice(0, -REASON_NAMES.length) : header;
    this.#ids = ids;
    this.#positions = positionsIn(fileName, own, options);
    this.#names = own;
    this.#noteIgnored(fileName, options);
    // The texts that make an id can be in any column, so such a rejects file needs the same options.
    this.#own = ids?.rule.kind === 'texts' ? own : own.map((column, index) => this.#ownName(column, index));
  }

  #noteIgnored(fileName: string, { ids, onNote }: CsvOptions): void {
    const { members, idTexts } = this.#positions;
    const used = [...members, ...idTexts];
    const ignored = this.#names.filter((_, index) => !used.includes(index));
    if (ignored.length === 0) return;
    const idColumns = idTexts.filter(position => !members.includes(position));
    const idNames = ids === undefined ? ['id'] : idColumns.map(position => visible(this.#names[position]!));
    const read = `${[...idNames, 'name'].join(', ')} and tag`;
    onNote(`${fileName}: only ${read} are read; ignored: ${shownColumns(ignored)}`);
  }

  /** The name of a column in a rejects file. With it, the file needs no options. */
  #ownName(column: string | undefined, index: number): string | undefined {
    const isConfusing = [...MEMBERS, PLURAL_TAG].includes(keyOf(column));
    return MEMBERS[this.#positions.members.indexOf(index)] ?? (isConfusing ? `ignored ${column}` : column);
  }

  row(number: number, record: CsvRecord): PlantRow {
    const { fields, fault: formFault } = this.#withoutReason(record);
    const broken = formFault === undefined ? fields.findIndex(field => LINE_BREAK.test(field ?? '')) : -1;
    const fault = formFault ?? this.#countFault(fields);
    const idTexts = fault === undefined ? this.#positions.idTexts.map(index => fields[index]) : undefined;
    const madeId = this.#ids?.make(idTexts);
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
        const found: Rejected = { fields, code: fault?.code ?? String(error), message };
        const rejected = this.#isNumbered ? withNumber(found, madeId) : found;
        const names = this.#rejectsNames();
        const own = names.map((_, index) => rejected.fields[index]);
        const reason = [String(record.line), String(number), rejected.code, rejected.message];
        return csvLine([...own, ...reason, ...rejected.fields.slice(names.length)]);
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
   * Removes the reason of an earlier import. A row with too few fields or wrong quotes keeps its
   * message until the user fills a missing field or clears the code. A row that is not UTF-8 keeps
   * it until U+FFFD is replaced.
   */
  #withoutReason(record: RecordFields): RecordFields {
    const { fields, fault } = record;
    if (!this.isRejectsFile || fault !== undefined) return record;
    const own = fields.slice(0, this.#own.length);
    const excess = fields.slice(own.length);
    const [, , code = '', message] = excess.splice(0, REASON_NAMES.length);
    const all = [...own, ...excess];
    // A user may have deleted the code of a row without excess fields.
    const isReason =
      fields.length === own.length + REASON_NAMES.length || isFormCode(code) || ERROR_NUMBER.test(code);
    if (!isReason) return record;
    if (!isFormCode(code) || message === undefined) return { fields: all };
    const had = fieldCountOf(code) ?? own.length;
    // With one column, a row with wrong quotes lacks no field.
    const isIncomplete = had < own.length || hidesFields(code);
    if (isIncomplete && all.slice(had).every(field => field === undefined))
      return { fields: own.slice(0, had), fault: { code, message } };
    if (isStillNotUtf8(code, all)) return { fields: all, fault: { code, message } };
    return { fields: all };
  }

  /** Why the fields are not one for each column; undefined if they are. */
  #countFault(fields: Fields): FormFault | undefined {
    const count = this.#own.length;
    // A spreadsheet adds empty fields to rows that are shorter than others.
    if (fields.length >= count && fields.slice(count).every(field => field === undefined)) return undefined;
    return {
      code: `fields ${fields.length}`,
      message: `the row has ${amount(fields.length, 'field')}, but the first row names ${amount(count, 'column')}`,
    };
  }

  #read(fields: Fields, madeId: ReturnType<IdMaker['make']> | undefined): NewPlantReading {
    const [idText, name, tag] = this.#positions.members.map(position =>
      position === undefined ? undefined : fields[position],
    );
    return validateNewPlant(madeId ?? readCsvId(idText), name, tag);
  }
}

/** Adds the number of a row that a rejects file has as its id. */
function withNumber({ fields, code, message }: Rejected, madeId: MadeId | undefined): Rejected {
  const id = madeId?.kind === 'id' ? String(madeId.id) : undefined;
  // The text of the row is in the first column, which the number would need.
  if (isFormCode(code) && hidesFields(code))
    return { fields, code, message: id === undefined ? message : `${message}; its id is ${id}` };
  const isCounted = isFormCode(code) && fieldCountOf(code) !== undefined;
  return { fields: [id, ...fields], code: isCounted ? `fields ${fields.length + 1}` : code, message };
}
