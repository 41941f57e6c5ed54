import type { PlantReader, PlantRevision } from './plant-store.ts';

/** Reads the latest revision of each plant from one snapshot, in the order of ids. */
export async function* latestPlants(reader: PlantReader): AsyncIterable<PlantRevision> {
  let latest: PlantRevision | undefined;
  for await (const revision of reader.revisions()) {
    if (latest !== undefined && latest.plant.id !== revision.plant.id) yield latest;
    latest = revision;
  }
  if (latest !== undefined) yield latest;
}
