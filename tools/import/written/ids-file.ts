import { ID_MAX } from '../../../src/core/contract/limits.ts';
import { csvLine } from '../../../src/formats/csv.ts';
import { amount } from '../../../src/formats/number-text.ts';
import { visible } from '../../../src/formats/visible-text.ts';
import type { IdMaker } from '../rows/id-maker.ts';
import type { PlantRow } from '../rows/plant-row.ts';
import { NewLinesFile } from './new-lines-file.ts';

/**
 * The file with the id that was made for each row. Ids of texts stand beside the texts, numbers
 * beside name and tag. The id of a row is written before the row is sent.
 */
export class IdsFile extends NewLinesFile {
  readonly #ids: IdMaker;
  #count = 0;

  /** Creates the file with its header. @throws {Failure} if it exists or cannot be created */
  constructor(path: string, ids: IdMaker) {
    super([path], '--ids-file');
    this.#ids = ids;
    const columns = ids.rule.kind === 'texts' ? ids.columns : ['name', 'tag'];
    // An id that is made of a column "id" would be one of two columns of this name.
    const names = columns.map(each => (/^id$/i.test(each) ? `text of ${each}` : each));
    this.write(csvLine(['id', ...names]));
  }

  /** @throws {Failure} if the ids cannot be written */
  add(rows: readonly PlantRow[]): void {
    const lines = rows.map(row => this.#line(row)).filter(line => line !== undefined);
    this.write(lines.join(''));
    this.#count += lines.length;
  }

  /** @returns what a person needs to know of the file. @param isComplete whether it has all rows */
  summary(isComplete: boolean): string {
    const written = `${amount(this.#count, 'id')} ${this.#count === 1 ? 'is' : 'are'} in ${visible(this.path)}`;
    const { nextNumber } = this.#ids;
    if (nextNumber === undefined || !isComplete) return written;
    if (nextNumber > ID_MAX) return `${written}; no number is free after the largest id, ${ID_MAX}`;
    return `${written}; the next free number is ${nextNumber}`;
  }

  /** @returns undefined for a row without an id */
  #line({ madeId, reading }: PlantRow): string | undefined {
    if (madeId?.kind !== 'id') return undefined;
    const { name, tag } = reading.kind === 'plant' ? reading.plant : {};
    const texts = this.#ids.rule.kind === 'texts' ? madeId.texts : [name, tag];
    return csvLine([String(madeId.id), ...texts]);
  }
}
