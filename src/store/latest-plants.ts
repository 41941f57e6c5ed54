import type { PlantReader, PlantRevision } from './plant-store.ts';

/** Smallest id, tag, beginning of the name, and maximum number of plants. */
export type PlantFilter = { from?: bigint; tag?: string; name?: string; limit?: number };

/** Reads the latest revision of each selected plant, in the order of ids, in constant memory. */
export async function* latestPlants(
  reader: PlantReader,
  { from, tag, name = '', limit }: PlantFilter = {},
): AsyncIterable<PlantRevision> {
  let count = 0;
  let latest: PlantRevision | undefined;
  const isSelected = ({ plant }: PlantRevision): boolean =>
    plant.name.startsWith(name) && (tag === undefined || plant.tag === tag);
  for await (const revision of reader.revisions(from)) {
    if (latest !== undefined && latest.plant.id !== revision.plant.id && isSelected(latest)) {
      yield latest;
      if (++count === limit) return;
    }
    latest = revision;
  }
  if (latest !== undefined && isSelected(latest)) yield latest;
}
