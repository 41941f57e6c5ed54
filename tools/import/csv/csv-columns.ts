import { readCsvId } from '../../../src/cli/shared/id-text.ts';
import { type NewPlantReading, validateNewPlant } from '../../../src/core/contract/plant.ts';
import { amount } from '../../../src/formats/number-text.ts';
import { visible } from '../../../src/formats/visible-text.ts';
import { ownColumns, RejectsColumns, withoutReason } from '../rejects/csv-rejects.ts';
import type { FormFault } from '../rejects/rejects-format.ts';
import type { IdMaker, MadeIdReading } from '../rows/id-maker.ts';
import { lineBreakIn, type PlantRow, shownColumns } from '../rows/plant-row.ts';
import { type CsvOptions, type Positions, positionsIn } from './csv-header.ts';
import type { CsvRecord, Fields } from './csv-records.ts';

/** The columns of a CSV file. It makes a {@link PlantRow} of each record. */
export class Columns {
  readonly #ids: IdMaker | undefined;
  /** Whether the last columns have the reasons. */
  readonly isRejectsFile: boolean;
  readonly #positions: Positions;
  /** The header without the reasons. */
  readonly #names: Fields;
  readonly #rejects: RejectsColumns;

  /** @throws {Failure} if the header lacks a column, or has it twice, or has ids that are made */
  constructor(fileName: string, header: Fields, options: CsvOptions) {
    const { own, isRejectsFile } = ownColumns(fileName, header, options);
    this.#ids = options.ids;
    this.isRejectsFile = isRejectsFile;
    this.#positions = positionsIn(fileName, own, options);
    this.#names = own;
    this.#rejects = new RejectsColumns(own, this.#positions, this.#ids?.rule);
    this.#noteIgnored(fileName, options);
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

  row(number: number, record: CsvRecord): PlantRow {
    const { line } = record;
    const { fields, fault: formFault } = this.isRejectsFile
      ? withoutReason(record, this.#names.length)
      : record;
    const fault = formFault ?? this.#countFault(fields);
    const idTexts = fault === undefined ? this.#positions.idTexts.map(index => fields[index]) : undefined;
    const madeId = this.#ids?.make(idTexts);
    return {
      number,
      place: () => `line ${line} (row ${number})`,
      lineBreak: formFault === undefined ? lineBreakIn(this.#names, fields) : undefined,
      reading:
        fault === undefined
          ? this.#read(fields, madeId)
          : { kind: 'invalid', error: 'notNewPlant', message: fault.message },
      madeId,
      rejectsFormat: this.#rejects.format,
      rejectsLine: error => this.#rejects.lineOf({ number, line, fields, fault, madeId }, error),
    };
  }

  /** Why the fields are not one for each column; undefined if they are. */
  #countFault(fields: Fields): FormFault | undefined {
    const count = this.#names.length;
    // A spreadsheet adds empty fields to rows that are shorter than others.
    if (fields.length >= count && fields.slice(count).every(field => field === undefined)) return undefined;
    return {
      code: `fields ${fields.length}`,
      message: `the row has ${amount(fields.length, 'field')}, but the first row names ${amount(count, 'column')}`,
    };
  }

  #read(fields: Fields, madeId: MadeIdReading | undefined): NewPlantReading {
    const [idText, name, tag] = this.#positions.members.map(position =>
      position === undefined ? undefined : fields[position],
    );
    return validateNewPlant(madeId ?? readCsvId(idText), name, tag);
  }
}
