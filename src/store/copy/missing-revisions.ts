import { type PlantRevision, StoreRefused } from '../plant-store.ts';

/**
 * The revisions that the target of a copy lacks, in their order. Both sides are gone through side by side, to the end
 * of both, and no more than one revision of each is held.
 *
 * @param source in the order of ids, then revisions, as every reader gives them
 * @param target in the same order
 * @throws {StoreRefused} at the first revision of the target that the source does not have, or has with other content
 */
export async function* missingRevisions(
  source: AsyncIterable<PlantRevision>,
  target: AsyncIterable<PlantRevision>,
): AsyncIterable<PlantRevision> {
  const kept = target[Symbol.asyncIterator]();
  try {
    let next = await kept.next();
    for await (const revision of source) {
      const order = next.done ? -1 : keyOrder(revision, next.value);
      if (order < 0) {
        yield revision;
      } else if (order > 0) {
        throw foreign(next.value);
      } else {
        if (!isSameRevision(revision, next.value)) throw otherContent(revision);
        next = await kept.next();
      }
    }
    if (!next.done) throw foreign(next.value);
  } finally {
    await kept.return?.();
  }
}

/** Whether two revisions are the same in every column. */
function isSameRevision(one: PlantRevision, two: PlantRevision): boolean {
  return (
    one.plant.id === two.plant.id &&
    one.revision === two.revision &&
    one.plant.name === two.plant.name &&
    one.plant.tag === two.plant.tag &&
    one.recordedAt === two.recordedAt &&
    one.recordedBy === two.recordedBy
  );
}

/** The target holds this revision with other content. */
function otherContent({ plant, revision }: PlantRevision): StoreRefused {
  return new StoreRefused(
    `the target holds revision ${revision} of plant ${plant.id} otherwise than the source does; ${ADVICE}`,
  );
}

/** Said of every target that cannot be the copy of the source. */
export const ADVICE =
  'only a store that is empty, or holds a part of the source and nothing else, can become its copy; name a new one with --to';

function foreign({ plant, revision }: PlantRevision): StoreRefused {
  return new StoreRefused(
    `the target holds revision ${revision} of plant ${plant.id}, which the source does not; ${ADVICE}`,
  );
}

/** Below 0 when the first comes before the second. */
function keyOrder(one: PlantRevision, two: PlantRevision): number {
  if (one.plant.id === two.plant.id) return one.revision - two.revision;
  return one.plant.id < two.plant.id ? -1 : 1;
}
