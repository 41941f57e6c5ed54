import { contentChecksum } from '../../src/core/commit/checksum.ts';
import type { PlantWrite } from '../../src/core/commit/plant-commits.ts';
import type { NewPlant } from '../../src/core/contract/plant.ts';

/** A write as the service makes it. */
export function plantWrite(plant: NewPlant, recordedBy: number, ifRevision?: number | undefined): PlantWrite {
  return { plant, recordedBy, ifRevision, contentChecksum: contentChecksum(plant) };
}
