import { contentChecksum, isIntact } from '../../src/core/commit/checksum.ts';
import type { IntactRevision, PlantRevision } from '../../src/core/commit/plant-revision.ts';
import { isSameContent, type NewPlant } from '../../src/core/contract/plant.ts';
import type { PlantReader } from '../../src/engines/plant-reader.ts';
import { IDS_MAX } from './remembered-ids.ts';

/** What an import does with the plant of a row. */
export type Effect =
  | { kind: 'created' | 'unchanged' | 'damaged' }
  /** The store has other content under this id. */
  | { kind: 'changed'; stored: IntactRevision }
  /** An earlier row of the list gave the id this content. */
  | { kind: 'changed by list' };

/** Predicts what an import does with each row, if nobody else writes to the store meanwhile. */
export class StoreComparison {
  readonly #reader: PlantReader;
  readonly #replaces: boolean;
  /** Of ids to which an earlier row would have given new content: the checksum of that content. */
  readonly #written = new Map<bigint, bigint>();
  /** The latest revisions of the ids of the current rows. */
  #stored = new Map<bigint, PlantRevision>();
  /** Whether the store has the id of any row. */
  hasFoundPlants = false;

  /** @param replaces whether the import replaces stored content */
  constructor(reader: PlantReader, replaces: boolean) {
    this.#reader = reader;
    this.#replaces = replaces;
  }

  /** Reads what the store has of these plants, before {@link effectOf} is called for each. */
  async read(plants: readonly NewPlant[]): Promise<void> {
    const ids = [...new Set(plants.map(({ id }) => id))];
    const revisions = await this.#reader.latestRevisions(ids);
    this.hasFoundPlants ||= revisions.length > 0;
    this.#stored = new Map(revisions.map(revision => [revision.plant.id, revision]));
  }

  effectOf(plant: NewPlant): Effect {
    const written = this.#written.get(plant.id);
    if (written !== undefined) {
      const checksum = contentChecksum(plant);
      if (written === checksum) return { kind: 'unchanged' };
      if (this.#replaces) this.#written.set(plant.id, checksum);
      return { kind: 'changed by list' };
    }
    const stored = this.#stored.get(plant.id);
    if (stored === undefined) {
      this.#write(plant);
      return { kind: 'created' };
    }
    if (!isIntact(stored)) return { kind: 'damaged' };
    if (isSameContent(stored.plant, plant)) return { kind: 'unchanged' };
    if (this.#replaces) this.#write(plant);
    return { kind: 'changed', stored };
  }

  #write(plant: NewPlant): void {
    if (this.#written.size < IDS_MAX) this.#written.set(plant.id, contentChecksum(plant));
  }
}
