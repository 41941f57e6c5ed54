import type { PlantRevision } from './plant-store.ts';

/**
 * The last revision of each plant.
 *
 * @param revisions in the order of ids, then revisions, as every reader gives them
 */
export async function* latestOf(revisions: AsyncIterable<PlantRevision>): AsyncIterable<PlantRevision> {
  let last: PlantRevision | undefined;
  for await (const revision of revisions) {
    if (last !== undefined && last.plant.id !== revision.plant.id) yield last;
    last = revision;
  }
  if (last !== undefined) yield last;
}
