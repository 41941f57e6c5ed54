import type { NewPlant } from '../contract/plant.ts';

export interface PlantRevision {
  plant: NewPlant;
  revision: number;
  /** Milliseconds since 1970 UTC. */
  recordedAt: number;
  /** The id of the token that sent it. A copied revision may name a token that this store lacks. */
  recordedBy: number;
  /** A reader does not check it. Code that uses the content calls `isIntact` first. */
  checksum: bigint;
}
