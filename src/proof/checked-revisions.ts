import { isIntact } from '../core/commit/checksum.ts';
import type { IntactRevision, PlantRevision } from '../core/commit/plant-revision.ts';
import { StoreDamaged } from '../core/commit/store-errors.ts';
import { keyOrder, revisionName } from '../engines/tables/revision-rows.ts';

/** A revision that differs from what was written. Its key may be wrong, too. */
export class Damaged {
  readonly revision: PlantRevision;

  constructor(revision: PlantRevision) {
    this.revision = revision;
  }
}

export type CheckedRevision = IntactRevision | Damaged;

/**
 * Checks each revision, and wraps a damaged one.
 *
 * @throws {StoreDamaged} if intact revisions are not in the order of their keys: two pages of the
 *   file were exchanged. Then an older revision could be taken for the latest one.
 */
export async function* checkedRevisions(
  revisions: AsyncIterable<PlantRevision>,
): AsyncIterable<CheckedRevision> {
  let last: PlantRevision | undefined;
  for await (const revision of revisions) {
    if (!isIntact(revision)) {
      yield new Damaged(revision);
      continue;
    }
    const fault = orderFault(last, revision);
    if (fault !== undefined) throw new StoreDamaged(fault);
    last = revision;
    yield revision;
  }
}

/**
 * Checks the order of two intact revisions.
 *
 * @param last the one that was read before `next`; undefined: `next` is the first
 * @returns the fault
 */
export function orderFault(last: PlantRevision | undefined, next: PlantRevision): string | undefined {
  if (last === undefined || keyOrder(last, next) < 0) return undefined;
  return `${revisionName(next)} comes after ${revisionName(last)}`;
}

/** Yields the revisions of one plant, and damaged ones that may be of this plant. */
export async function* revisionsOfPlant(
  revisions: AsyncIterable<CheckedRevision>,
  id: bigint,
): AsyncIterable<CheckedRevision> {
  let last: PlantRevision | undefined;
  for await (const checked of revisions) {
    const row = rowOf(checked);
    if (row.plant.id !== id && !mayBeOfSamePlant(last, checked)) return;
    last = row;
    yield checked;
  }
}

/** A plant as it was at a time, and as it is when it is read. */
export interface PlantAt {
  /** The latest revision that was recorded until the time; undefined if the plant is newer. */
  atTime: IntactRevision | undefined;
  latest: IntactRevision;
  /** Whether a revision before `atTime` was recorded after the time, as the clock was set back. */
  isClockSetBack: boolean;
}

/**
 * Yields each plant, and each damaged revision. A plant is left out if a damaged revision may be
 * its content now or at the time, since older content must not be taken for it.
 *
 * @param time in milliseconds since 1970 UTC; Infinity: the plants as they are now
 */
export async function* plantsAt(
  revisions: AsyncIterable<CheckedRevision>,
  time: number,
): AsyncIterable<PlantAt | Damaged> {
  let plant: PlantAt | undefined;
  for await (const checked of revisions) {
    if (plant !== undefined && !mayBeOfSamePlant(plant.latest, checked)) {
      yield plant;
      plant = undefined;
    }
    if (checked instanceof Damaged) {
      plant = undefined;
      yield checked;
    } else if (checked.recordedAt <= time) {
      const isClockSetBack = plant !== undefined && (plant.isClockSetBack || plant.latest.recordedAt > time);
      plant = { atTime: checked, latest: checked, isClockSetBack };
    } else if (plant !== undefined) {
      plant.latest = checked;
    } else if (checked.revision === 1) {
      plant = { atTime: undefined, latest: checked, isClockSetBack: false };
    }
  }
  if (plant !== undefined) yield plant;
}

/**
 * Whether a revision may be of the same plant as the row before it. The id of a damaged revision
 * may be wrong, but its place among the rows is right. So it begins another plant only if its
 * number is 1.
 */
function mayBeOfSamePlant(last: PlantRevision | undefined, checked: CheckedRevision): boolean {
  const isDamaged = checked instanceof Damaged;
  if (last === undefined) return isDamaged;
  const { plant, revision } = rowOf(checked);
  return plant.id === last.plant.id || (isDamaged && revision !== 1);
}

function rowOf(checked: CheckedRevision): PlantRevision {
  return checked instanceof Damaged ? checked.revision : checked;
}

/** What commands print for a damaged revision. */
export function damageOf(revision: PlantRevision): string {
  return `${revisionName(revision)} is damaged: its checksum is wrong`;
}
