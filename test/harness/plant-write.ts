import type { NewPlant } from '../../src/contract/plant.ts';
import { contentChecksum } from '../../src/store/audit/checksum.ts';
import type { PlantWrite } from '../../src/store/plant-store.ts';

/** A write as the service makes it. */
export function plantWrite(plant: NewPlant, recordedBy: number): PlantWrite {
  return { plant, recordedBy, contentChecksum: contentChecksum(plant) };
}
