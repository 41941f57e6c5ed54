import { contentChecksum } from '../../src/core/commit/checksum.ts';
import type { NewPlant } from '../../src/core/contract/plant.ts';

/** Ids that an import or a dry run remembers. More would fill the memory. */
export const IDS_MAX = 1_000_000;

/** The first {@link IDS_MAX} different ids. */
export class EarlierIds {
  readonly #ids = new Set<bigint>();

  add(id: bigint): void {
    if (!this.isFull) this.#ids.add(id);
  }

  has(id: bigint): boolean {
    return this.#ids.has(id);
  }

  get size(): number {
    return this.#ids.size;
  }

  /** Whether a further id is not remembered. */
  get isFull(): boolean {
    return this.#ids.size >= IDS_MAX;
  }
}

/** The content of the first row of each id, for the first {@link IDS_MAX} ids. */
export class FirstContents {
  readonly #checksums = new Map<bigint, bigint>();

  /** Notes a row, and says what the first row of its id has. Ids beyond the limit are always the first. */
  note(plant: NewPlant): 'first' | 'same' | 'other' {
    const checksum = contentChecksum(plant);
    const first = this.#checksums.get(plant.id);
    if (first !== undefined) return first === checksum ? 'same' : 'other';
    if (this.#checksums.size < IDS_MAX) this.#checksums.set(plant.id, checksum);
    return 'first';
  }
}
