import { closeSync, openSync, writeFileSync } from 'node:fs';
import { csvLine } from '../../operate/csv.ts';
import { Failure } from '../output/failure.ts';
import { amount } from '../output/number-text.ts';
import { visible } from '../output/visible-text.ts';
import type { MadeIds } from './made-ids.ts';
import type { PlantRow, PlantRows } from './plant-row.ts';

/**
 * The file with the id that was made for each row. Ids of texts stand beside the texts, numbers
 * beside name and tag. The operating system has the id of a row before the row is sent, so a process
 * that is killed loses no id.
 */
export class IdsFile implements Disposable {
  readonly #path: string;
  readonly #ids: MadeIds;
  readonly #descriptor: number;
  #count = 0;

  /** Creates the file with its header. @throws {Failure} if it exists or cannot be created */
  constructor(path: string, ids: MadeIds) {
    this.#path = path;
    this.#ids = ids;
    try {
      this.#descriptor = openSync(path, 'wx');
    } catch (error) {
      throw unwritable(path, error);
    }
    const columns = ids.rule.kind === 'texts' ? ids.columns : ['name', 'tag'];
    // An id that is made of a column "id" would be one of two columns of this name.
    this.#write(csvLine(['id', ...columns.map(each => (/^id$/i.test(each) ? `text of ${each}` : each))]));
  }

  /** Yields the same rows, after their ids are written. */
  async *written(batches: PlantRows): PlantRows {
    for await (const rows of batches) {
      const lines = rows.map(row => this.#line(row)).filter(line => line !== undefined);
      this.#write(lines.join(''));
      this.#count += lines.length;
      yield rows;
    }
  }

  /** @returns what a person needs to know of the file. @param isComplete whether it has all rows */
  summary(isComplete: boolean): string {
    const { nextNumber } = this.#ids;
    const next = nextNumber === undefined || !isComplete ? '' : `; the next free number is ${nextNumber}`;
    return `${amount(this.#count, 'id')} ${this.#count === 1 ? 'is' : 'are'} in ${visible(this.#path)}${next}`;
  }

  [Symbol.dispose](): void {
    closeSync(this.#descriptor);
  }

  /** @returns undefined for a row without an id */
  #line({ madeId, reading }: PlantRow): string | undefined {
    if (madeId?.kind !== 'id') return undefined;
    const { name, tag } = reading.kind === 'plant' ? reading.plant : {};
    const texts = this.#ids.rule.kind === 'texts' ? madeId.texts : [name, tag];
    return csvLine([String(madeId.id), ...texts]);
  }

  #write(text: string): void {
    try {
      writeFileSync(this.#descriptor, text);
    } catch (error) {
      throw unwritable(this.#path, error);
    }
  }
}

function unwritable(path: string, error: unknown): unknown {
  const { code } = error as NodeJS.ErrnoException;
  if (code === undefined) return error;
  const fault = code === 'EEXIST' ? 'already exists and was not changed' : `cannot be written (${code})`;
  return new Failure(`${path} ${fault}; name another file with --ids-file`);
}
