import { isIntact } from './checksum.ts';
import { type PlantRevision, StoreDamaged } from './plant-store.ts';

/** A revision that is not the one that was written. Its key may be wrong, too. */
export class Damaged {
  readonly revision: PlantRevision;

  constructor(revision: PlantRevision) {
    this.revision = revision;
  }
}

export type CheckedRevision = PlantRevision | Damaged;

export function check(revision: PlantRevision): CheckedRevision {
  return isIntact(revision) ? revision : new Damaged(revision);
}

/**
 * Checks the revisions of a reader.
 *
 * @throws {StoreDamaged} if intact revisions are not in the order of their keys: two pages of the
 *   file were exchanged. Then an older revision could be taken for the latest one.
 */
export async function* checkedRevisions(
  revisions: AsyncIterable<PlantRevision>,
): AsyncIterable<CheckedRevision> {
  let last: PlantRevision | undefined;
  for await (const revision of revisions) {
    const checked = check(revision);
    if (!(checked instanceof Damaged)) {
      if (last !== undefined && keyOrder(last, checked) >= 0) {
        throw new StoreDamaged(`${revisionName(checked)} comes after ${revisionName(last)}`);
      }
      last = checked;
    }
    yield checked;
  }
}

/** Reads the revisions of one plant, and those damaged ones that may be of this plant. */
export async function* revisionsOfPlant(
  revisions: AsyncIterable<CheckedRevision>,
  id: bigint,
): AsyncIterable<CheckedRevision> {
  let last: PlantRevision | undefined;
  for await (const checked of revisions) {
    const revision = checked instanceof Damaged ? checked.revision : checked;
    if (revision.plant.id !== id && !isOfSamePlant(last, checked)) return;
    last = revision;
    yield checked;
  }
}

/**
 * Reads the latest revision of each plant, and each damaged revision. A plant whose latest revision
 * is damaged, or may be, has none: an older revision is not its content.
 *
 * @param until only revisions that were recorded until then: milliseconds since 1970 UTC. If the
 *   clock was set back, the highest revision counts. A damaged one may have any time.
 */
export async function* latestPlants(
  revisions: AsyncIterable<CheckedRevision>,
  until = Number.POSITIVE_INFINITY,
): AsyncIterable<CheckedRevision> {
  let last: PlantRevision | undefined;
  let latest: PlantRevision | undefined;
  for await (const checked of revisions) {
    const isDamaged = checked instanceof Damaged;
    const revision = isDamaged ? checked.revision : checked;
    if (latest !== undefined && !isOfSamePlant(last, checked)) {
      yield latest;
      latest = undefined;
    }
    last = revision;
    if (isDamaged) {
      latest = undefined;
      yield checked;
    } else if (revision.recordedAt <= until) {
      latest = revision;
    }
  }
  if (latest !== undefined) yield latest;
}

/**
 * Whether a revision may be of the same plant as the one before it. The id of a damaged one may be
 * wrong, but its place is right. So it begins another plant only if its number is 1.
 */
function isOfSamePlant(last: PlantRevision | undefined, checked: CheckedRevision): boolean {
  const isDamaged = checked instanceof Damaged;
  if (last === undefined) return isDamaged;
  const { plant, revision } = isDamaged ? checked.revision : checked;
  return plant.id === last.plant.id || (isDamaged && revision !== 1);
}

/** @returns a negative number when `one` comes before `two` */
export function keyOrder(one: PlantRevision, two: PlantRevision): number {
  if (one.plant.id === two.plant.id) return one.revision - two.revision;
  return one.plant.id < two.plant.id ? -1 : 1;
}

export function revisionName({ plant, revision }: PlantRevision): string {
  return `revision ${revision} of plant ${plant.id}`;
}

/** What commands say of a revision that is not intact. */
export function damageOf(revision: PlantRevision): string {
  return `${revisionName(revision)} is damaged: its checksum is wrong`;
}
