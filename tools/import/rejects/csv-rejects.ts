import { Failure } from '../../../src/cli/shared/failure.ts';
import type { ErrorBody } from '../../../src/core/contract/errors.ts';
import { csvLine } from '../../../src/formats/csv.ts';
import { keyOf, type Positions } from '../csv/csv-header.ts';
import type { CsvRecord, Fields } from '../csv/csv-records.ts';
import type { IdRule, MadeId } from '../rows/id-maker.ts';
import { MEMBERS, type RejectsFormat, type RowOptions } from '../rows/plant-row.ts';
import {
  type FormFault,
  fieldCountOf,
  hidesFields,
  IGNORED_ID,
  ignoredName,
  isFormCode,
  isStillNotUtf8,
  REASON_NAMES,
} from './rejects-format.ts';

/** The fields of a record, and why they are not one for each column. */
export type RecordFields = Pick<CsvRecord, 'fields' | 'fault'>;

/** A row that a rejects file gets. */
export interface RejectedRow {
  number: number;
  /** Number of its first line. */
  line: number;
  fields: Fields;
  /** Undefined if the form of the row has no fault. */
  fault: FormFault | undefined;
  madeId: MadeId | undefined;
}

/** The number of an error of the API. */
const ERROR_NUMBER = /^[1-5][0-9]{4}$/;

/**
 * Removes the columns of the reason, which a rejects file has last.
 *
 * @throws {Failure} if an option does not fit a rejects file
 */
export function ownColumns(
  fileName: string,
  header: Fields,
  { form, ids }: RowOptions,
): { own: Fields; isRejectsFile: boolean } {
  // A spreadsheet adds columns without names for excess fields after the reasons.
  const named = header.slice(0, header.findLastIndex(column => column !== undefined) + 1);
  if (named.slice(-REASON_NAMES.length).join() !== REASON_NAMES.join())
    return { own: header, isRejectsFile: false };
  if (form.quotes === 'off')
    throw new Failure(
      `${fileName} is a rejects file, in which quotes always enclose fields; import it without --quotes off`,
      2,
    );
  if (ids?.rule.kind === 'numbers')
    throw new Failure(`${fileName} is a rejects file; import it without --number-from`, 2);
  return { own: named.slice(0, -REASON_NAMES.length), isRejectsFile: true };
}

/**
 * Removes the reason of an earlier import from a record of a rejects file.
 *
 * @param columns the number of columns without the reason
 * @returns the fault of the earlier import, too, if nobody has corrected it
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

/** The columns of a rejects file that is written: those of the CSV file, then those of the reason. */
export class RejectsColumns {
  readonly format: RejectsFormat;
  readonly #own: Fields;
  readonly #isNumbered: boolean;

  /** @param rule how the ids are made; undefined if the file has them */
  constructor(own: Fields, { members }: Positions, rule: IdRule | undefined) {
    this.#isNumbered = rule?.kind === 'numbers';
    const names = own.map((column, index) => {
      // The texts that make an id can be in any column.
      if (rule?.kind === 'texts') return keyOf(column) === 'id' ? IGNORED_ID : column;
      return MEMBERS[members.indexOf(index)] ?? (column && ignoredName(column));
    });
    this.#own = this.#isNumbered ? ['id', ...names] : names;
    this.format = { extension: 'csv', header: csvLine([...this.#own, ...REASON_NAMES]) };
  }

  /** The order is: own columns, even if fields are missing; the reason; excess fields. */
  lineOf({ number, line, fields, fault, madeId }: RejectedRow, { error, message }: ErrorBody): string {
    const id = this.#isNumbered && madeId?.kind === 'id' ? String(madeId.id) : undefined;
    // The text of such a row is in the first column, which the number would need.
    const isText = fault !== undefined && hidesFields(fault.code);
    const all = this.#isNumbered && !isText ? [id, ...fields] : fields;
    const note = isText && id !== undefined ? `; its id is ${id}` : '';
    const own = this.#own.map((_, index) => all[index]);
    const code = codeOf(fault, all) ?? String(error);
    const reason = [String(line), String(number), code, `${message}${note}`];
    return csvLine([...own, ...reason, ...all.slice(own.length)]);
  }
}

/** @param fields that are written, with the id of a numbered row */
function codeOf(fault: FormFault | undefined, fields: Fields): string | undefined {
  return fault?.code.startsWith('fields ') ? `fields ${fields.length}` : fault?.code;
}
