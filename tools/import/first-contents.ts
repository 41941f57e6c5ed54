import { contentChecksum } from '../../src/core/commit/checksum.ts';
import type { NewPlant } from '../../src/core/contract/plant.ts';
import { IDS_MAX } from './earlier-ids.ts';

/** The content of the first row of each id, for the first {@link IDS_MAX} ids. */
export class FirstContents {
  readonly #checksums = new Map<bigint, bigint>();

  /** Notes a row. @returns whether the first row of its id has other content */
  isOther(plant: NewPlant): boolean {
    const checksum = contentChecksum(plant);
    const first = this.#checksums.get(plant.id);
    if (first === undefined && this.#checksums.size < IDS_MAX) this.#checksums.set(plant.id, checksum);
    return first !== undefined && first !== checksum;
  }
}
