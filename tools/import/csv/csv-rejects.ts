import type { ErrorBody } from '../../../src/core/contract/errors.ts';
import { csvLine } from '../../../src/formats/csv.ts';
import { type FormFault, fieldCountOf, hidesFields, isFormCode, isStillNotUtf8 } from '../rows/form-fault.ts';
import type { MadeId } from '../rows/id-maker.ts';
import { REASON_NAMES, type RejectsFormat } from '../rows/plant-row.ts';
import type { CsvRecord, Fields } from './csv-records.ts';

/** The fields of a record, and why they are not one for each column. */
export type RecordFields = Pick<CsvRecord, 'fields' | 'fault'>;

/** A row that a rejects file gets. */
export interface RejectedRow {
  number: number;
  /** Number of its first line. */
  line: number;
  fields: Fields;
  /** Why the fields are not one for each column; undefined if they are. */
  fault: FormFault | undefined;
  madeId: MadeId | undefined;
}

/** What a rejects file has of a row, besides its place. */
interface Rejected {
  fields: Fields;
  /** A code of the form, or the number of an error of the API. */
  code: string;
  message: string;
}

/** The number of an error of the API. */
const ERROR_NUMBER = /^[1-5][0-9]{4}$/;

/** The columns of a rejects file: those of the CSV file, then those of the reason. */
export class RejectsColumns {
  readonly #own: Fields;
  readonly #isNumbered: boolean;

  /** @param isNumbered whether the rows are numbered: then the number of a row becomes its id */
  constructor(own: Fields, isNumbered: boolean) {
    this.#own = isNumbered ? ['id', ...own] : own;
    this.#isNumbered = isNumbered;
  }

  get format(): RejectsFormat {
    return { kind: 'csv', header: csvLine([...this.#own, ...REASON_NAMES]) };
  }

  /** The order is: own columns, even if fields are missing; the reason; excess fields. */
  lineOf({ number, line, fields, fault, madeId }: RejectedRow, { error, message }: ErrorBody): string {
    const found: Rejected = { fields, code: fault?.code ?? String(error), message };
    const rejected = this.#isNumbered ? withNumber(found, madeId) : found;
    const own = this.#own.map((_, index) => rejected.fields[index]);
    const reason = [String(line), String(number), rejected.code, rejected.message];
    return csvLine([...own, ...reason, ...rejected.fields.slice(own.length)]);
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

/**
 * Removes the reason of an earlier import from a record of a rejects file. A row with too few fields
 * or wrong quotes keeps its message until the user fills a missing field or clears the code. A row
 * that is not UTF-8 keeps it until U+FFFD is replaced.
 *
 * @param columns the number of columns without the reason
 */
export function withoutReason(record: RecordFields, columns: number): RecordFields {
  const { fields, fault } = record;
  if (fault !== undefined) return record;
  const own = fields.slice(0, columns);
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
