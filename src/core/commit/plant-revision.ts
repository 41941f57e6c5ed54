import type { NewPlant } from '../contract/plant.ts';

export interface PlantRevision {
  plant: NewPlant;
  revision: number;
  /** Milliseconds since 1970 UTC. */
  recordedAt: number;
  /** The id of the token that sent it. A copied revision may name a token that this store lacks. */
  recordedBy: number;
  /**
   * A reader does not check it. Code that uses the content calls `isIntact` first. Undefined if a
   * value of the stored row has a wrong type: then the revision is not intact.
   */
  checksum: bigint | undefined;
}

/** A revision before it is stored, or one that `isIntact` has accepted. */
export interface IntactRevision extends PlantRevision {
  checksum: bigint;
}
